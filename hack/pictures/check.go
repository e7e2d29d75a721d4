package pictures

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Sizes of texts in pixels, which are those of the style sheet, and the space inside boxes.
const (
	size, lineHeight = 13, 17
	padding          = 5
)

// width returns how wide a text is at most, in pixels: fonts of systems differ, and this is one of the widest.
func width(text, class string) float64 {
	em := 0.0
	for _, r := range text {
		switch {
		case strings.ContainsRune("iljI.,:;'|!", r):
			em += 0.32
		case strings.ContainsRune("tfr()[]- /", r):
			em += 0.4
		case strings.ContainsRune("mwMW→", r):
			em += 0.9
		case unicode.IsUpper(r):
			em += 0.68
		default:
			em += 0.61
		}
	}
	switch class {
	case "title", "heading":
		return em * size * 1.08
	case "small":
		return em * 11
	}
	return em * 12
}

// check returns what is wrong with a picture: texts that do not fit, and things that overlap.
func (p *picture) check() error {
	var problems []error
	for _, problem := range slices.Concat(p.checkBoxes(), p.checkArrows(), p.checkTexts()) {
		problems = append(problems, fmt.Errorf("%s.txt: %s", p.name, problem))
	}
	return errors.Join(problems...)
}

func (p *picture) canvas() rect { return rect{0, 0, p.width, p.height} }

func (p *picture) checkBoxes() []string {
	var problems []string
	bad := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	for i, b := range p.boxes {
		for j, line := range b.lines {
			if w := width(line, lineClass(j)); w > b.w-2*padding {
				bad("%q needs %.0f pixels, and box %s has %.0f", line, w, b.id, b.w-2*padding)
			}
		}
		if h := float64(len(b.lines)*lineHeight + padding); h > b.h {
			bad("the lines of box %s need %.0f pixels, and it has %.0f", b.id, h, b.h)
		}
		if !p.canvas().contains(b.rect) {
			bad("box %s is not inside the picture", b.id)
		}
		for _, other := range p.boxes[:i] {
			if b.overlaps(other.rect) {
				bad("boxes %s and %s overlap", b.id, other.id)
			}
		}
		for _, area := range p.areas {
			if b.overlaps(area.rect) && !area.contains(b.rect) {
				bad("box %s is partly inside the area %s", b.id, area.lines[0])
			}
		}
	}
	return problems
}

func (p *picture) checkArrows() []string {
	var problems []string
	for _, a := range p.arrows {
		for _, part := range parts(p.route(a)) {
			for _, b := range p.boxes {
				if part.overlaps(b.rect) {
					problems = append(problems, fmt.Sprintf("the arrow from %s to %s crosses box %s", a.from.id, a.to.id, b.id))
				}
			}
		}
	}
	return problems
}

func (p *picture) checkTexts() []string {
	texts := slices.Clone(p.texts)
	for _, area := range p.areas {
		texts = append(texts, area.heading())
	}
	for _, a := range p.arrows {
		if a.text != "" {
			texts = append(texts, a.label(p.route(a)))
		}
	}
	var problems []string
	bad := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	for i, t := range texts {
		if !p.canvas().contains(t.rect()) {
			bad("%q is not inside the picture", t.text)
		}
		for _, b := range p.boxes {
			if t.rect().overlaps(b.rect) {
				bad("%q overlaps box %s", t.text, b.id)
			}
		}
		for _, other := range texts[:i] {
			if t.rect().overlaps(other.rect()) {
				bad("%q overlaps %q", t.text, other.text)
			}
		}
		for _, a := range p.arrows {
			if slices.ContainsFunc(parts(p.route(a)), t.rect().overlaps) {
				bad("the arrow from %s to %s crosses %q", a.from.id, a.to.id, t.text)
			}
		}
	}
	return problems
}

func lineClass(line int) string {
	if line == 0 {
		return "title"
	}
	return "note"
}

// heading returns the heading of an area.
func (b box) heading() label { return label{point{b.x + 12, b.y + 20}, "start", "heading", b.lines[0]} }

// rect returns what a text covers.
func (l label) rect() rect {
	w := width(l.text, l.class)
	switch l.align {
	case "middle":
		return rect{l.x - w/2, l.y - 10, w, 13}
	case "end":
		return rect{l.x - w, l.y - 10, w, 13}
	}
	return rect{l.x, l.y - 10, w, 13}
}

// parts returns the rectangles of the parts of an arrow. Its ends touch boxes, but do not overlap them.
func parts(route []point) []rect {
	var all []rect
	for i, to := range route[1:] {
		from := route[i]
		left, top := min(from.x, to.x), min(from.y, to.y)
		all = append(all, rect{left, top, max(from.x, to.x) - left, max(from.y, to.y) - top})
	}
	return all
}

func (r rect) overlaps(o rect) bool {
	return r.x < o.x+o.w && o.x < r.x+r.w && r.y < o.y+o.h && o.y < r.y+r.h
}

func (r rect) contains(o rect) bool {
	return r.x <= o.x && r.y <= o.y && o.x+o.w <= r.x+r.w && o.y+o.h <= r.y+r.h
}
