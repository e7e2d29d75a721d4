package book

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/cluster-api/docs/manual"
)

var (
	links    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	headings = regexp.MustCompile(`(?m)^#+ (.*)$`)
)

// broken returns the links of the page to files or headings that do not exist. Links to other sites are not checked.
func (p page) broken(root string) []string {
	var list []string
	for _, match := range links.FindAllStringSubmatch(p.prose(), -1) {
		if strings.Contains(match[1], "://") {
			continue
		}
		path, anchor, _ := strings.Cut(match[1], "#")
		text := p.text
		if path != "" {
			path = filepath.Join(root, filepath.Dir(p.name), path)
			info, err := os.Stat(path)
			if err != nil {
				list = append(list, fmt.Sprintf("%s: %s: no such file", p.name, match[1]))
				continue
			}
			if anchor == "" || info.IsDir() {
				continue
			}
			content, err := os.ReadFile(path)
			if err != nil {
				list = append(list, fmt.Sprintf("%s: %s: %v", p.name, match[1], err))
				continue
			}
			text = string(content)
		}
		if anchor != "" && !anchors(text)[anchor] {
			list = append(list, fmt.Sprintf("%s: %s: no such heading", p.name, match[1]))
		}
	}
	return list
}

// prose returns the page without its blocks, which may look like links.
func (p page) prose() string {
	text := p.text
	for _, b := range p.blocks {
		text = strings.Replace(text, b.code, "", 1)
	}
	return text
}

// anchors returns the anchors of the headings in a page.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	for _, match := range headings.FindAllStringSubmatch(text, -1) {
		found[manual.Anchor(match[1])] = true
	}
	return found
}
