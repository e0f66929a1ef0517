"""Processes on this machine: started detached, followed by the kernel's word, ended as whole trees."""
