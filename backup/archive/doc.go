// Package archive reads and writes the one file of a backup: named entries, such as a snapshot of etcd and objects as YAML, in a tar
// archive that is compressed with zstd and encrypted with age.
//
// Standard programs read it, too, without this package:
//
//	age --decrypt --identity key.txt backup | zstd --decompress | tar --extract
//	sha256sum --check SHA256SUMS
//
// The last entry, SHA256SUMS, has the SHA-256 of all others. The compressed data is padded with a frame that readers of zstd skip, so that
// the last chunk of the encrypted data is full: a shorter one is a truncated file, and not a damaged one.
//
// Both directions are streams. A Writer needs about 2 MiB of memory, a Reader about 3 MiB, whatever the size of the archive; tests hold
// them to 6 MiB each. age authenticates the content, but not who wrote it: every client that has a recipient, a public key, can write
// archives for it. A Reader therefore limits what an archive can demand: MaxEntries, MaxName, MaxSmall. The size of other entries is not
// limited: callers that store an entry check the size that Next returns first.
//
// What entries mean, where archives are stored, and where keys are from does not belong here, nor do types of Kubernetes.
package archive

import "errors"

// Limits of archives. Writers adhere to them, and Readers reject archives beyond.
const (
	// MaxEntries is the largest number of entries, without SHA256SUMS.
	MaxEntries = 1000
	// MaxName is the largest length of a name, in bytes.
	MaxName = 255
	// MaxSmall is the largest size in bytes of an entry that ReadSmall returns.
	MaxSmall = 16 << 20
	// MaxRecipients is the largest number of recipients, and of identities.
	MaxRecipients = 20
)

// Errors of Readers, by what follows from them. Each is wrapped with what was found. Errors of the underlying reader are none of them,
// and are wrapped as they are: reading again may succeed.
var (
	// ErrWrongKey is returned if none of the identities can decrypt the archive: another one is needed. A header whose recipients are damaged
	// has this error, too.
	ErrWrongKey = errors.New("no identity can decrypt the archive")
	// ErrTruncated is returned if the end of the archive is missing: it was not written completely. Another backup is needed.
	ErrTruncated = errors.New("the archive is truncated")
	// ErrDamaged is returned if the content is not what was written, or exceeds a limit. Another backup is needed.
	ErrDamaged = errors.New("the archive is damaged")
	// ErrNotArchive is returned for files that were not written by this package: probably the wrong file.
	ErrNotArchive = errors.New("not an archive of a backup")
)

const (
	// sums is the name of the last entry. Its format is that of the program sha256sum.
	sums = "SHA256SUMS"
	// window is how far zstd refers back, in bytes. Most of the memory is for it. A larger one does not compress etcd's pages noticeably
	// better.
	window = 1 << 20
	// chunk is the size of age's chunks, in bytes, and overhead that of the authentication of each.
	chunk, overhead = 64 << 10, 16
	// nonce is what is between age's header and the first chunk, in bytes.
	nonce = 16
	// maxHeader is the largest size of age's header, in bytes: MaxRecipients need at most half of it.
	maxHeader = 64 << 10
)
