// Package manual renders the book as a site: pages, style sheets, one script and the index of its search. The site needs nothing else,
// neither a server nor the internet.
//
// The pages and their order do not belong here; they are in docs/book.
package manual

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"sigs.k8s.io/cluster-api/docs/book"
	"sigs.k8s.io/cluster-api/sdk/version"
)

//go:embed assets
var assets embed.FS

// Site is the files of the site, by name. There are no folders.
type Site map[string][]byte

// view is the input of the template of a page.
type view struct {
	Title, Version, Home, Source string
	Chapters                     []viewChapter
	Sections                     []link
	Previous, Next               *link
	Body                         template.HTML
}

type viewChapter struct {
	Title string
	Pages []link
}

// link is a link of a page's navigation.
type link struct {
	Title, To string
	Current   bool
}

// Generated is a page that is not one of the files of the book, because what it describes is in the program.
type Generated struct {
	book.Page
	// Chapter is the title of the chapter whose last page it is.
	Chapter string
	// Source is the page in Markdown.
	Source []byte
}

// site is what is known while pages are rendered.
type site struct {
	chapters []book.Chapter
	order    []book.Page
	files    fs.FS
	// generated has the sources of pages that are not in files.
	generated map[string][]byte
	version   version.Info
	template  *template.Template
	entries   []entry
}

// New renders the book, with the version of the program that has it, and pages that the program generates.
func New(info version.Info, generated ...Generated) (Site, error) {
	chapters, err := book.Contents()
	if err != nil {
		return nil, err
	}
	return build(book.Files(), chapters, info, generated...)
}

// build renders the pages of chapters, and the index page before them.
func build(files fs.FS, chapters []book.Chapter, info version.Info, generated ...Generated) (Site, error) {
	sources, chapters, err := withGenerated(chapters, generated)
	if err != nil {
		return nil, err
	}
	page, err := template.ParseFS(assets, "assets/page.html")
	if err != nil {
		return nil, err
	}
	s := &site{
		chapters: chapters, order: []book.Page{{File: book.Index, Title: "Contents"}},
		files: files, generated: sources, version: info, template: page,
	}
	known := map[string]bool{book.Index: true}
	for _, chapter := range chapters {
		s.order = append(s.order, chapter.Pages...)
		for _, p := range chapter.Pages {
			known[p.File] = true
		}
	}
	out := Site{}
	resolve := resolver(known, revision(info))
	for i := range s.order {
		if err := s.page(out, i, resolve); err != nil {
			return nil, fmt.Errorf("%s: %w", s.order[i].File, err)
		}
	}
	if out["search.js"], err = indexed(s.entries).script(); err != nil {
		return nil, err
	}
	for _, name := range []string{"manual.css", "pictures.css", "manual.js"} {
		if out[name], err = fs.ReadFile(assets, "assets/"+name); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// withGenerated returns the sources of generated pages, and the chapters with these pages.
func withGenerated(chapters []book.Chapter, generated []Generated) (map[string][]byte, []book.Chapter, error) {
	sources := map[string][]byte{}
	chapters = slices.Clone(chapters)
	for _, page := range generated {
		at := slices.IndexFunc(chapters, func(c book.Chapter) bool { return c.Title == page.Chapter })
		if at < 0 {
			return nil, nil, fmt.Errorf("%s: the book has no chapter %q", page.File, page.Chapter)
		}
		chapters[at].Pages = append(slices.Clip(chapters[at].Pages), page.Page)
		sources[page.File] = page.Source
	}
	return sources, chapters, nil
}

// read returns the source of a page, and where the source is on the web; nowhere if the page is generated.
func (s *site) read(page string) ([]byte, string, error) {
	if source, ok := s.generated[page]; ok {
		return source, "", nil
	}
	source, err := fs.ReadFile(s.files, page)
	return source, Repository + "/blob/" + revision(s.version) + "/" + folder + "/" + page, err
}

// page adds the page at a position of the order to the site, and its sections to the entries of the search.
func (s *site) page(out Site, at int, resolve func(string) (string, bool, error)) error {
	p := s.order[at]
	source, from, err := s.read(p.File)
	if err != nil {
		return err
	}
	d, err := render(source, resolve, s.picture)
	if err != nil {
		return err
	}
	v := view{Title: d.sections[0].heading, Version: s.version.GitVersion, Home: home, Source: from, Body: d.body}
	for _, chapter := range s.chapters {
		c := viewChapter{Title: chapter.Title}
		for _, other := range chapter.Pages {
			c.Pages = append(c.Pages, link{Title: other.Title, To: fileOf(other.File), Current: other.File == p.File})
		}
		v.Chapters = append(v.Chapters, c)
	}
	for _, section := range d.sections {
		if section.level == 2 && p.File != book.Index {
			v.Sections = append(v.Sections, link{Title: section.heading, To: "#" + section.id})
		}
		s.entries = append(s.entries, entry{file: fileOf(p.File), page: p.Title, section: section})
	}
	s.entries[len(s.entries)-len(d.sections)].summary = p.Summary
	if at > 0 {
		v.Previous = &link{Title: s.order[at-1].Title, To: fileOf(s.order[at-1].File)}
	}
	if at+1 < len(s.order) {
		v.Next = &link{Title: s.order[at+1].Title, To: fileOf(s.order[at+1].File)}
	}
	var buffer bytes.Buffer
	if err := s.template.Execute(&buffer, v); err != nil {
		return err
	}
	out[fileOf(p.File)] = buffer.Bytes()
	return nil
}

// Write writes the files into a directory, which it creates if needed. Other files there stay.
func (s Site) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // The book is public.
		return fmt.Errorf("creating the directory of the site: %w", err)
	}
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if err := os.WriteFile(filepath.Join(dir, name), s[name], 0o644); err != nil { //nolint:gosec // The book is public.
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}
