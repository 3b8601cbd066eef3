// Package onsale sells an event out to thousands of shoppers over the real API,
// with payments that fail in every way the sandbox has, and looks afterwards
// whether all of it adds up.
//
// Shoppers know what any client does: they look at the map, hold, swap, extend,
// give up, pay, and ask what became of it. A request without an answer is sent
// again, to any node, under the same key. When the last of them has gone and
// nothing is under way any more, three who do not trust each other are compared:
// the books (by seatcast check), the sandbox's ledger, and what each shopper is
// told of her own bookings.
package onsale
