package userdata

import "strings"

// Quote returns a word for sh.
func Quote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// QuoteAll returns words for sh.
func QuoteAll(words []string) string {
	quoted := make([]string, 0, len(words))
	for _, w := range words {
		quoted = append(quoted, Quote(w))
	}
	return strings.Join(quoted, " ")
}
