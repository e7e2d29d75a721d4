package condition

import "strings"

// BriefLength is the maximum length of the result of Brief, in bytes.
const BriefLength = 200

// Brief truncates text that a workload cluster, a provider or a user determines, for a part of a message.
func Brief(text string) string { return Truncate(text, BriefLength) }

// Truncate returns text as valid UTF-8 of at most limit bytes. If it was longer, it ends with "...".
func Truncate[T ~string](text T, limit int) T {
	const mark = "..."
	if len(text) <= limit {
		return T(strings.ToValidUTF8(string(text), ""))
	}
	return T(strings.ToValidUTF8(string(text[:max(limit-len(mark), 0)]), "") + mark)
}
