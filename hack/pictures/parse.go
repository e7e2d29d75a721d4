package pictures

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// unit is the size of a unit of coordinates, in pixels.
const unit = 10

type picture struct {
	name, title, desc string
	width, height     float64
	areas, boxes      []box
	texts             []label
	lines             [][2]point
	arrows            []arrow
}

type point struct{ x, y float64 }

type rect struct{ x, y, w, h float64 }

// box is a box or an area.
type box struct {
	rect
	id, kind string
	lines    []string
}

// label is a text whose baseline is at a point.
type label struct {
	point
	align, class, text string
}

type arrow struct {
	from, to    end
	dashed      bool
	via         *float64
	place, text string
}

// end is where an arrow touches a box: the middle of a side, moved by an offset.
type end struct {
	id, side string
	offset   float64
}

var (
	token   = regexp.MustCompile(`"[^"]*"|\S+`)
	endForm = regexp.MustCompile(`^([\w-]+)\.(top|bottom|left|right)([+-][\d.]+)?$`)
)

// parse reads the source of a picture.
func parse(name, source string) (*picture, error) {
	p := &picture{name: name}
	number := 0
	for line := range strings.Lines(source) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := p.statement(line); err != nil {
			return nil, fmt.Errorf("%s.txt:%d: %w", name, number, err)
		}
	}
	if p.title == "" || p.desc == "" || p.width == 0 {
		return nil, fmt.Errorf("%s.txt: a picture needs title, desc and size", name)
	}
	return p, nil
}

func (p *picture) statement(line string) error {
	word, rest, _ := strings.Cut(line, " ")
	args := token.FindAllString(rest, -1)
	switch word {
	case "title":
		p.title = rest
		return nil
	case "desc":
		p.desc = strings.TrimSpace(p.desc + " " + rest)
		return nil
	case "arrow":
		return p.arrow(args)
	}
	id := ""
	if word == "box" && len(args) > 0 {
		id, args = args[0], args[1:]
	}
	counts := map[string]int{"size": 2, "text": 2, "line": 4, "area": 4, "box": 4}
	count, known := counts[word]
	if !known {
		return fmt.Errorf("unknown word %q", word)
	}
	numbers, args, err := coordinates(args, count)
	if err != nil {
		return err
	}
	n := append(numbers, 0, 0)
	switch {
	case word == "size":
		p.width, p.height = n[0], n[1]
	case word == "line":
		p.lines = append(p.lines, [2]point{{n[0], n[1]}, {n[2], n[3]}})
	case word == "text" && len(args) == 3:
		p.texts = append(p.texts, label{point{n[0], n[1]}, args[0], args[1], args[2]})
	case word == "area" && len(args) == 2:
		p.areas = append(p.areas, box{rect{n[0], n[1], n[2], n[3]}, "", args[0], args[1:]})
	case word == "box" && len(args) >= 2:
		p.boxes = append(p.boxes, box{rect{n[0], n[1], n[2], n[3]}, id, args[0], args[1:]})
	default:
		return fmt.Errorf("%s has %d arguments after its coordinates", word, len(args))
	}
	return nil
}

// coordinates returns the first arguments as pixels, and the others without quotes.
func coordinates(args []string, count int) ([]float64, []string, error) {
	if len(args) < count {
		return nil, nil, fmt.Errorf("%d coordinates are missing", count-len(args))
	}
	var numbers []float64
	for _, arg := range args[:count] {
		n, err := strconv.ParseFloat(arg, 64)
		if err != nil {
			return nil, nil, err
		}
		numbers = append(numbers, n*unit)
	}
	var others []string
	for _, arg := range args[count:] {
		others = append(others, strings.Trim(arg, `"`))
	}
	return numbers, others, nil
}

func (p *picture) arrow(args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("an arrow has two ends")
	}
	var a arrow
	for i, to := range []*end{&a.from, &a.to} {
		match := endForm.FindStringSubmatch(args[i])
		if match == nil {
			return fmt.Errorf("%s is not ID.SIDE", args[i])
		}
		*to = end{id: match[1], side: match[2]}
		if match[3] != "" {
			offset, err := strconv.ParseFloat(match[3], 64)
			if err != nil {
				return err
			}
			to.offset = offset * unit
		}
		if p.box(to.id) == nil {
			return fmt.Errorf("there is no box %s", to.id)
		}
	}
	for _, option := range args[2:] {
		key, value, _ := strings.Cut(option, "=")
		switch {
		case strings.HasPrefix(option, `"`):
			a.text = strings.Trim(option, `"`)
		case key == "dashed":
			a.dashed = true
		case key == "label":
			a.place = value
		case key == "via":
			via, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return err
			}
			via *= unit
			a.via = &via
		default:
			return fmt.Errorf("unknown option %s", option)
		}
	}
	p.arrows = append(p.arrows, a)
	return nil
}

func (p *picture) box(id string) *box {
	for i := range p.boxes {
		if p.boxes[i].id == id {
			return &p.boxes[i]
		}
	}
	return nil
}
