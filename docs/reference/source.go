package reference

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/cluster-api/docs/book"
	"sigs.k8s.io/cluster-api/docs/manual"
)

// Source returns the pages of what the source code of the repository says: labels, annotations and finalizers; conditions and reasons;
// metrics; messages.
func Source(repository fs.FS) ([]manual.Generated, error) {
	constants, metrics, err := declarations(repository)
	if err != nil {
		return nil, err
	}
	messages, err := messagesPage(repository)
	return []manual.Generated{
		page("names", "Labels, annotations and finalizers", "all names in the metadata of objects", constants,
			section{"Labels", "Label"}, section{"Annotations", "Annotation"}, section{"Finalizers", "Finalizer"}),
		page("conditions", "Conditions and reasons", "all types of conditions, and the reasons of their statuses", constants,
			section{"Conditions", "Condition"}, section{"Reasons", "Reason"},
			section{"Conditions of v1beta1", "V1Beta1Condition"}, section{"Reasons of v1beta1", "V1Beta1Reason"}),
		page("metrics", "Metrics", "all metrics of managers besides those of controller-runtime and client-go", metrics, section{"Metrics", ""}),
		messages,
	}, err
}

// constant is a documented value.
type constant struct{ name, value, doc string }

// section is a part of a page with the constants of which the name ends with a suffix.
type section struct{ title, suffix string }

// declarations returns the constants of the API and the metrics of all packages.
func declarations(repository fs.FS) (constants, metrics []constant, err error) {
	files := token.NewFileSet()
	err = fs.WalkDir(repository, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (strings.HasPrefix(entry.Name(), ".") || slices.Contains(notOfPrograms(), entry.Name())):
			return fs.SkipDir
		case entry.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		content, err := fs.ReadFile(repository, name)
		if err != nil {
			return err
		}
		if inAPI := strings.HasPrefix(name, "api/"); inAPI || strings.Contains(string(content), "prometheus.") {
			file, err := parser.ParseFile(files, name, content, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			if inAPI {
				constants = append(constants, slices.DeleteFunc(constantsOf(file), func(c constant) bool {
					// The packages of v1beta2 have those of v1beta1 under names of their own.
					return path.Base(path.Dir(name)) == "v1beta1" && (strings.HasSuffix(c.name, "Condition") || strings.HasSuffix(c.name, "Reason"))
				})...)
			}
			metrics = append(metrics, metricsOf(file)...)
		}
		return nil
	})
	return constants, metrics, err
}

// notOfPrograms are folders whose code is not part of programs.
func notOfPrograms() []string { return []string{"out", "bin", "testdata", "test", "hack"} }

// constantsOf returns the exported constants of a file that have a text as their value.
func constantsOf(file *ast.File) []constant {
	var found []constant
	for _, declared := range file.Decls {
		group, ok := declared.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			value := spec.(*ast.ValueSpec)
			if len(value.Names) != 1 || len(value.Values) != 1 || !value.Names[0].IsExported() {
				continue
			}
			text, ok := literal(value.Values[0])
			doc := value.Doc
			if len(group.Specs) == 1 {
				doc = group.Doc
			}
			if ok && text != "" {
				found = append(found, constant{value.Names[0].Name, text, doc.Text()})
			}
		}
	}
	return found
}

// metricsOf returns the metrics of a file: what is of a type like prometheus.CounterOpts, with its help.
func metricsOf(file *ast.File) []constant {
	var found []constant
	ast.Inspect(file, func(n ast.Node) bool {
		options, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		named, ok := options.Type.(*ast.SelectorExpr)
		if !ok || !strings.HasSuffix(named.Sel.Name, "Opts") {
			return true
		}
		var m constant
		for _, element := range options.Elts {
			field, ok := element.(*ast.KeyValueExpr)
			if !ok {
				continue
			}
			text, _ := literal(field.Value)
			switch key, _ := field.Key.(*ast.Ident); {
			case key != nil && key.Name == "Name":
				m.value = text
			case key != nil && key.Name == "Help":
				m.doc = strings.ToLower(strings.TrimSuffix(named.Sel.Name, "Opts")) + ": " + text
			}
		}
		if m.value != "" && m.doc != "" {
			found = append(found, m)
		}
		return true
	})
	return found
}

// literal returns the value of a text in the source.
func literal(e ast.Expr) (string, bool) {
	basic, ok := e.(*ast.BasicLit)
	if !ok || basic.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(basic.Value)
	return text, err == nil
}

// page returns a page with a table per section. A constant is in the first section that fits; a value that several packages declare is
// there once.
func page(file, title, summary string, constants []constant, sections ...section) manual.Generated {
	var out strings.Builder
	fmt.Fprintf(&out, "# %s\n\n", title)
	for _, s := range sections {
		docs := map[string]string{}
		for _, c := range constants {
			if sectionOf(c.name, sections) == s && len(c.doc) > len(docs[c.value]) {
				docs[c.value] = strings.TrimPrefix(c.doc, c.name+" ")
			}
		}
		if len(docs) == 0 {
			continue
		}
		fmt.Fprintf(&out, "## %s\n\n| | |\n|---|---|\n", s.title)
		for _, value := range slices.Sorted(maps.Keys(docs)) {
			fmt.Fprintf(&out, "| `%s` | %s |\n", value, cell(docs[value]))
		}
		out.WriteString("\n")
	}
	return manual.Generated{
		Page: book.Page{File: file + ".md", Title: title, Summary: summary}, Chapter: Chapter, Source: []byte(out.String()),
	}
}

// sectionOf returns the section with the longest suffix that a name, or the name before a final "Name", has.
func sectionOf(name string, sections []section) section {
	var fits section
	for _, s := range sections {
		if strings.HasSuffix(strings.TrimSuffix(name, "Name"), s.suffix) && (fits.title == "" || len(s.suffix) > len(fits.suffix)) {
			fits = s
		}
	}
	return fits
}

// messageKinds are the kinds of docs/messages that users look up, with the titles of their sections.
func messageKinds() []section {
	return []section{
		{"Events", "event"}, {"Conditions", "condition"}, {"Waits", "wait"}, {"Invalid objects", "invalid"}, {"Errors", "error"},
		{"Log lines", "log"},
	}
}

// messagesPage returns the page of the texts in docs/messages, by component.
func messagesPage(repository fs.FS) (manual.Generated, error) {
	var out strings.Builder
	out.WriteString("# Messages\n\nValues are inserted where a text has a verb, such as `%s`, or …\n\n")
	names, err := fs.Glob(repository, "docs/messages/*.txt")
	for _, name := range names {
		content, err := fs.ReadFile(repository, name)
		if err != nil {
			return manual.Generated{}, err
		}
		component, texts := strings.TrimSuffix(path.Base(name), ".txt"), textsOf(string(content))
		for _, s := range messageKinds() {
			if len(texts[s.suffix]) == 0 {
				continue
			}
			fmt.Fprintf(&out, "## %s of %s\n\n", s.title, component)
			for _, text := range slices.Compact(texts[s.suffix]) {
				fmt.Fprintf(&out, "- %s\n", cell(text))
			}
			out.WriteString("\n")
		}
	}
	return manual.Generated{
		Page:    book.Page{File: "messages.md", Title: "Messages", Summary: "all errors, events, conditions and log lines"},
		Chapter: Chapter, Source: []byte(out.String()),
	}, err
}

// textsOf returns the texts of a file of docs/messages, by kind.
func textsOf(content string) map[string][]string {
	texts := map[string][]string{}
	last := ""
	for line := range strings.SplitSeq(content, "\n") {
		kind, text, _ := strings.Cut(line, " ")
		switch text = strings.TrimSpace(text); {
		case kind == "#":
		case kind != "":
			texts[kind] = append(texts[kind], text)
			last = kind
		case text != "" && len(texts[last]) > 0: // Another line of the same text.
			texts[last][len(texts[last])-1] += " " + text
		}
	}
	return texts
}
