package machines

import (
	"hash/fnv"
	"time"
)

// Startup is the duration of one startup stage of a machine: Duration, plus a random fraction of it of at most Jitter.
type Startup struct {
	Duration time.Duration
	// Jitter is a factor of Duration, 0 for none.
	Jitter float64
}

// Delay returns the duration of the stage. The random part is derived from the seed, for example a machine's UID and the
// name of the stage, so it is stable across restarts.
func (s Startup) Delay(seed ...string) time.Duration {
	hash := fnv.New64a()
	for _, part := range seed {
		_, _ = hash.Write([]byte(part)) // never fails
		_, _ = hash.Write([]byte{0})
	}
	share := float64(mix(hash.Sum64())>>11) / (1 << 53)
	// The sum would overflow.
	delay := (1 + share*s.Jitter) * float64(s.Duration)
	return time.Duration(min(max(delay, 0), float64(longestDelay)))
}

// longestDelay is practically infinite, but does not overflow times.
const longestDelay = 100 * 365 * 24 * time.Hour

// mix spreads a hash over all bits: hashes of similar seeds are similar.
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
