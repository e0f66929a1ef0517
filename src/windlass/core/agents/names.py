"""Names for agents: an adjective and an animal."""

from __future__ import annotations

from collections.abc import Callable

ADJECTIVES = (
    "able amber apt ardent bold brave bright brisk calm candid clever cosy crisp curious dapper daring deft eager "
    "early fair fleet fond frank fresh gentle glad golden grand happy hardy honest humble jolly keen kind lively loyal "
    "lucid lucky mellow merry mighty mild neat nimble noble patient plucky polite prompt proud quick quiet rapid ready "
    "robust rosy sharp silver sincere smart smooth snug solid spry steady stout sturdy subtle sunny sure swift tidy "
    "trusty upbeat valiant vivid warm wise witty zesty"
).split()
ANIMALS = (
    "adder alpaca ant badger bat bear beaver bee bison bobcat camel cat cheetah cobra condor crab crane cricket crow "
    "deer dingo dolphin dove eagle eel egret elk falcon ferret finch fox frog gecko gibbon goat goose gull hare hawk "
    "hedgehog heron hornet horse hyena ibex ibis iguana jackal jaguar jay kestrel kiwi koala lark lemur leopard lion "
    "lizard llama lynx magpie marmot marten mole moose moth mouse newt ocelot orca oriole osprey otter owl ox panda "
    "panther parrot pelican penguin pigeon pony puffin puma quail rabbit raccoon raven robin salmon seal shark sheep "
    "shrew sloth snail sparrow spider squid stoat stork swan swift tapir tern tiger toad trout turtle viper vole "
    "walrus wasp weasel whale wolf wombat wren yak zebra"
).split()

_ATTEMPTS = 200


def pick(is_taken: Callable[[str], bool], random: Callable[[], float]) -> str:
    """A name that nobody has."""
    for _ in range(_ATTEMPTS):
        adjective = ADJECTIVES[int(random() * len(ADJECTIVES))]
        name = f"{adjective}-{ANIMALS[int(random() * len(ANIMALS))]}"
        if not is_taken(name):
            return name
    number = 2
    while is_taken(f"{name}-{number}"):
        number += 1
    return f"{name}-{number}"
