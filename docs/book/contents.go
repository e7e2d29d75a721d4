// Package book is the manual: its pages in Markdown, their pictures, which hack/pictures draws and hack/casts records, and the order of
// the pages, which is that of README.md.
//
// How pages look as a site does not belong here; that is docs/manual.
package book

import (
	"embed"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
)

// Index is the page that has the table of contents.
const Index = "README.md"

//go:embed *.md pictures/*.svg
var pages embed.FS

// Chapter is a part of the table of contents.
type Chapter struct {
	Title string
	Pages []Page
}

// Page is a page in the table of contents.
type Page struct {
	// File is the name of its file, such as concepts.md.
	File string
	// Title is what the table of contents calls it. Its first heading may say more.
	Title string
	// Summary is what it is about, in a phrase of Markdown.
	Summary string
}

// row is a page in a table of the index.
var row = regexp.MustCompile(`^\| \[([^\]]+)\]\(([a-z0-9-]+\.md)\) \| (.*) \|$`)

// Files returns the files of all pages, and of their pictures.
func Files() fs.FS { return pages }

// Contents returns the chapters of the book.
func Contents() ([]Chapter, error) {
	index, err := fs.ReadFile(pages, Index)
	if err != nil {
		return nil, err
	}
	return parse(string(index), pages)
}

// parse returns the chapters of an index: headings of the second level with tables of pages. Other headings have none. It is an error if
// a page is listed twice, or does not exist.
func parse(index string, files fs.FS) ([]Chapter, error) {
	var chapters []Chapter
	listed := map[string]bool{}
	title, fresh := "", false
	for line := range strings.Lines(index) {
		line = strings.TrimSpace(line)
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			title, fresh = heading, true
			continue
		}
		match := row.FindStringSubmatch(line)
		if match == nil {
			continue
		}
		page := Page{File: match[2], Title: match[1], Summary: match[3]}
		switch _, err := fs.Stat(files, page.File); {
		case title == "":
			return nil, fmt.Errorf("%s: %s is in no chapter: put its row below a heading of the second level", Index, page.File)
		case listed[page.File]:
			return nil, fmt.Errorf("%s: %s is listed twice", Index, page.File)
		case err != nil:
			return nil, fmt.Errorf("%s: %s: %w", Index, page.File, err)
		}
		listed[page.File] = true
		if fresh {
			chapters, fresh = append(chapters, Chapter{Title: title}), false
		}
		last := &chapters[len(chapters)-1]
		last.Pages = append(last.Pages, page)
	}
	return chapters, nil
}
