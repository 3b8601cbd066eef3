package draw

import (
	"crypto/sha256"
	"math/bits"
)

// leaf is the hash of a leaf, by RFC 6962.
func leaf(data ...byte) Digest { return sha256.Sum256(append([]byte{0}, data...)) }

func node(left, right Digest) Digest {
	var b [1 + 2*sha256.Size]byte
	b[0] = 1
	copy(b[1:], left[:])
	copy(b[1+sha256.Size:], right[:])
	return sha256.Sum256(b[:])
}

// treeOf is the Merkle tree hash of leaves that are hashed already.
func treeOf(leaves []Digest) Digest {
	switch len(leaves) {
	case 0:
		return sha256.Sum256(nil)
	case 1:
		return leaves[0]
	}
	k := split(len(leaves))
	return node(treeOf(leaves[:k]), treeOf(leaves[k:]))
}

// split is the largest power of two below n.
func split(n int) int { return 1 << (bits.Len(uint(n-1)) - 1) }

// storeys are the shards and what is above them up to the root. There are 2ⁿ
// shards, so each storey has half of what the one below has.
func storeys(shards []Digest) [][]Digest {
	all := [][]Digest{shards}
	for below := shards; len(below) > 1; {
		above := make([]Digest, len(below)/2)
		for n := range above {
			above[n] = node(below[2*n], below[2*n+1])
		}
		all, below = append(all, above), above
	}
	return all
}

// path is what the hash of a shard is joined with on its way to the root.
func (l *List) path(shard int) []Digest {
	path := make([]Digest, len(l.storeys)-1)
	for n := range path {
		path[n] = l.storeys[n][shard>>n^1]
	}
	return path
}

// climb returns the root that a shard leads to by its path.
func climb(hash Digest, shard int, path []Digest) Digest {
	for n, beside := range path {
		if shard>>n&1 == 0 {
			hash = node(hash, beside)
		} else {
			hash = node(beside, hash)
		}
	}
	return hash
}

// shardRoot is the Merkle tree hash of the tickets of a shard.
func shardRoot(tickets []Ticket) Digest {
	leaves := make([]Digest, len(tickets))
	for n, t := range tickets {
		leaves[n] = leaf(append(t.ID[:], t.Nonce[:]...)...)
	}
	return treeOf(leaves)
}
