package book

import (
	"regexp"
	"strings"
)

var (
	spaces   = regexp.MustCompile(`\s+`)
	suffixes = regexp.MustCompile(`-[a-z0-9]{5}\b`)
	numbers  = regexp.MustCompile(`[0-9]+`)
)

// unseen returns the lines of example output that the real output does not have. Numbers, spaces and generated suffixes of
// names are ignored. A line "..." stands for any lines.
func unseen(picture, output string) []string {
	seen := map[string]bool{}
	for line := range strings.SplitSeq(output, "\n") {
		seen[essence(line)] = true
	}
	var missing []string
	for line := range strings.SplitSeq(picture, "\n") {
		if strings.TrimSpace(line) != "..." && !strings.HasPrefix(line, "$ ") && !seen[essence(line)] {
			missing = append(missing, line)
		}
	}
	return missing
}

func essence(line string) string {
	line = suffixes.ReplaceAllString(strings.TrimSpace(line), "-*")
	return spaces.ReplaceAllString(numbers.ReplaceAllString(line, "0"), " ")
}
