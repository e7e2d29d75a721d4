package iostreams

import (
	"io"
	"regexp"
	"strings"

	"sigs.k8s.io/cluster-api/sdk/condition"
)

// Clean makes text harmless for terminals, as condition.Clean does it. Texts of objects, releases and servers have been written by
// others: an escape sequence could clear the screen, rewrite what is above, or type into the shell.
func Clean(text string) string { return condition.Clean(text) }

// colors matches sequences that change colors, which are the only ones in trees.
var colors = regexp.MustCompile("\x1b\\[[0-9;]{0,8}m")

// CleanColored is Clean for text whose parts that others have written are clean already: sequences that change colors stay.
func CleanColored(text string) string {
	var b strings.Builder
	end := 0
	for _, at := range colors.FindAllStringIndex(text, -1) {
		b.WriteString(Clean(text[end:at[0]]) + text[at[0]:at[1]])
		end = at[1]
	}
	return b.String() + Clean(text[end:])
}

// cleaner is a writer through which everything passes that a command prints.
type cleaner struct {
	w     io.Writer
	clean func(string) string
}

// Write writes p without what terminals would interpret.
func (c *cleaner) Write(p []byte) (int, error) {
	if _, err := io.WriteString(c.w, c.clean(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}
