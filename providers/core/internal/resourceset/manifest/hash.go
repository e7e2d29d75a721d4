package manifest

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"
)

// Hash returns "sha256:" and the hexadecimal hash of keys and values. It only depends on them: the keys are sorted, and every key and
// value is preceded by its length, so that no text can move from one to another without changing the hash.
func Hash(data map[string][]byte) string {
	h := sha256.New()
	write := func(part []byte) {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		_, _ = h.Write(size[:]) // A hash never fails.
		_, _ = h.Write(part)
	}
	for _, key := range slices.Sorted(maps.Keys(data)) {
		write([]byte(key))
		write(data[key])
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}
