package house

import (
	"go/ast"
	"go/token"
	"strings"
)

// functionDoc reports an exported function, or an exported method of an exported type, without a comment.
func (c *checker) functionDoc(d *ast.FuncDecl) {
	if !d.Name.IsExported() || explained(d.Doc) {
		return
	}
	if d.Recv == nil {
		c.report(d.Pos(), "exported function %s has no comment", d.Name.Name)
		return
	}
	if receiver := receiverName(d); ast.IsExported(receiver) {
		c.report(d.Pos(), "exported method %s.%s has no comment", receiver, d.Name.Name)
	}
}

// receiverName is the name of d's receiver type.
func receiverName(d *ast.FuncDecl) string {
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.ParenExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// declarationDoc reports exported types, constants and variables without a comment of their own or of their group.
func (c *checker) declarationDoc(d *ast.GenDecl) {
	if d.Tok == token.IMPORT || explained(d.Doc) {
		return
	}
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() && !explained(s.Doc) {
				c.report(s.Pos(), "exported type %s has no comment", s.Name.Name)
			}
		case *ast.ValueSpec:
			if explained(s.Doc) || explained(s.Comment) {
				continue
			}
			for _, name := range s.Names {
				if name.IsExported() {
					c.report(name.Pos(), "exported %s %s has no comment", d.Tok, name.Name)
				}
			}
		}
	}
}

// explained reports whether a comment has text besides directives and markers.
func explained(doc *ast.CommentGroup) bool {
	for line := range strings.Lines(doc.Text()) {
		if text := strings.TrimSpace(line); text != "" && !strings.HasPrefix(text, "+") {
			return true
		}
	}
	return false
}
