package manual

import (
	"bytes"
	"fmt"
	"io/fs"
	"regexp"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/util"
)

var (
	// drawing is the destination of a picture.
	drawing = regexp.MustCompile(`^pictures/[a-z0-9-]+\.svg$`)
	// style is the style sheet of a file, which the site has in pictures.css.
	style = regexp.MustCompile(`(?s)<style>.*?</style>\n?`)
)

// content is the attribute of an image with what it shows.
const content = "content"

// picture returns a picture without its style sheet.
func (s *site) picture(destination string) ([]byte, error) {
	if !drawing.MatchString(destination) {
		return nil, fmt.Errorf("the picture %s is not an SVG file in pictures/", destination)
	}
	drawn, err := fs.ReadFile(s.files, destination)
	if err != nil {
		return nil, fmt.Errorf("the picture %s does not exist", destination)
	}
	return style.ReplaceAll(bytes.TrimSpace(drawn), nil), nil
}

// pictures makes pictures part of the page, where they follow its colors. Each is a paragraph, and has a text for readers who cannot see
// it.
func pictures(root ast.Node, source []byte, picture func(string) ([]byte, error)) error {
	return ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		image, ok := n.(*ast.Image)
		if !ok || !entering {
			return ast.WalkContinue, nil
		}
		destination := string(image.Destination)
		drawn, err := picture(destination)
		switch {
		case err != nil:
			return ast.WalkStop, err
		case plain(image, source) == "":
			return ast.WalkStop, fmt.Errorf("the picture %s has no text between its brackets, which says what it shows", destination)
		case image.Parent().Kind() != ast.KindParagraph || image.Parent().ChildCount() != 1:
			return ast.WalkStop, fmt.Errorf("the picture %s is not in a paragraph of its own", destination)
		}
		image.SetAttributeString(content, drawn)
		return ast.WalkContinue, nil
	})
}

// figure renders a picture.
func figure(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	drawn, _ := n.AttributeString(content)
	_, err := fmt.Fprintf(w, "<span class=\"figure\" tabindex=\"0\">%s</span>", drawn)
	return ast.WalkSkipChildren, err
}
