"""Which addresses may be connected to for others: those of the public internet, and those that the
people who run Waybill have named. Whoever names a URL is not to look around in their network."""

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

Address = IPv4Address | IPv6Address
NAT64: Final = ip_network("64:ff9b::/96")
NOT_PUBLIC: Final = tuple(
    map(
        ip_network,
        ("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32", "fec0::/10", "3fff::/20"),
    )
)
"""Which Python does not know as such: for protocols, site-local, of one cloud, for documents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedAddresses:
    """Allowed addresses that are not public: hosts by name, and networks."""

    hosts: frozenset[str] = frozenset()
    networks: tuple[IPv4Network | IPv6Network, ...] = ()

    def host(self, name: str) -> bool:
        return name.lower().rstrip(".") in self.hosts

    def names(self, text: str) -> bool:
        """Return True if the address lies in one of the allowed networks."""
        meant = _parse(text)
        return any(meant in network for network in self.networks)

    def address(self, text: str) -> bool:
        return self.names(text) or is_public(text)

    def all_allowed(self, host: str, addresses: Iterable[str]) -> bool:
        """Return whether the host was named, or each of its addresses may be connected to."""
        return self.host(host) or all(map(self.address, addresses))


def allowed(text: str) -> AllowedAddresses:
    """Parse a list of networks and names of hosts with commas between them.

    Raise ValueError for a word that is neither.
    """
    hosts, networks = set(), []
    for word in filter(None, map(str.strip, text.split(","))):
        try:
            networks.append(ip_network(word))
        except ValueError:
            if "/" in word or not word.strip("."):
                raise
            hosts.add(word.lower().rstrip("."))
    return AllowedAddresses(hosts=frozenset(hosts), networks=tuple(networks))


def is_public(text: str) -> bool:
    meant = _parse(text)
    special = meant.is_multicast or meant.is_reserved or any(meant in n for n in NOT_PUBLIC)
    return meant.is_global and not special


def _parse(text: str) -> Address:
    """Return the address that is meant: an address may wrap another one, such as IPv4 in IPv6."""
    address = ip_address(text.partition("%")[0])
    if not isinstance(address, IPv6Address):
        return address
    wrapped = address.ipv4_mapped or address.sixtofour
    if wrapped is None and address.teredo is not None:
        wrapped = address.teredo[1]
    if wrapped is None and address in NAT64:
        wrapped = IPv4Address(address.packed[-4:])
    return wrapped or address
