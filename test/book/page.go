package book

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// runnable is the mark of blocks that are run.
const runnable = "sh"

var marks = regexp.MustCompile(`^(sh|text|go|yaml)$`)

// page is one document.
type page struct {
	// name is its path below the root of the repository.
	name   string
	text   string
	blocks []block
}

// block is a fenced code block.
type block struct {
	line int
	mark string
	code string
}

// read returns the pages that match a pattern below root.
func read(root, pattern string) ([]page, error) {
	paths, err := filepath.Glob(filepath.Join(root, pattern))
	if err != nil {
		return nil, err
	}
	var pages []page
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return nil, err
		}
		blocks, err := parse(string(content))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		pages = append(pages, page{name: name, text: string(content), blocks: blocks})
	}
	if len(pages) == 0 {
		return nil, fmt.Errorf("no page matches %s", pattern)
	}
	return pages, nil
}

// parse returns the blocks of a page. Unknown marks are errors: because of a typo, a block would not be run.
func parse(text string) ([]block, error) {
	var blocks []block
	var open *block
	for i, line := range strings.Split(text, "\n") {
		fence, ok := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case ok && open == nil:
			if !marks.MatchString(fence) {
				return nil, fmt.Errorf("line %d: unknown mark %q: use sh for blocks to run, text for others", i+1, fence)
			}
			open = &block{line: i + 1, mark: fence}
		case ok:
			blocks = append(blocks, *open)
			open = nil
		case open != nil:
			open.code += line + "\n"
		}
	}
	if open != nil {
		return nil, fmt.Errorf("line %d: a block is not closed", open.line)
	}
	return blocks, nil
}

// script returns the runnable blocks as one bash script, which exits at the first failure and prints its position.
func (p page) script() string {
	var b strings.Builder
	for _, block := range p.blocks {
		if block.mark != runnable {
			continue
		}
		if b.Len() == 0 {
			b.WriteString("set -o errexit -o pipefail\ntrap 'echo \"the block at $at failed\" >&2' ERR\n")
		}
		fmt.Fprintf(&b, "at=%s:%d\n%s", p.name, block.line, block.code)
	}
	return b.String()
}
