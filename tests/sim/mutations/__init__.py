"""Guards that are removed from the product, one at a time: each must be missed by its invariant.

A mutation replaces what is a guard; it says which invariant must turn red, and by which faults.
"""

from typing import Final

from sim.mutations import drivers, services

MUTATIONS: Final = (*drivers.MUTATIONS, *services.MUTATIONS)
