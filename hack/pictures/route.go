package pictures

import (
	"fmt"
	"math"
	"strings"
)

// aside is how far an arrow goes aside that leaves and arrives on the same side.
const aside = 20

// at returns where an end is, and the direction away from its box.
func (p *picture) at(e end) (point, point) {
	b := p.box(e.id)
	switch e.side {
	case "left":
		return point{b.x, b.y + b.h/2 + e.offset}, point{-1, 0}
	case "right":
		return point{b.x + b.w, b.y + b.h/2 + e.offset}, point{1, 0}
	case "top":
		return point{b.x + b.w/2 + e.offset, b.y}, point{0, -1}
	default:
		return point{b.x + b.w/2 + e.offset, b.y + b.h}, point{0, 1}
	}
}

// route returns the corners of an arrow, with its ends. All parts are horizontal or vertical.
func (p *picture) route(a arrow) []point {
	from, out := p.at(a.from)
	to, in := p.at(a.to)
	// middle is where the part between two parallel ones is.
	middle := func(from, to, out, in float64) float64 {
		switch {
		case a.via != nil:
			return *a.via
		case out == in:
			return out*max(out*from, out*to) + out*aside
		}
		return (from + to) / 2
	}
	switch across, back := out.x != 0, in.x != 0; {
	case across && back && from.y == to.y && out.x != in.x, !across && !back && from.x == to.x && out.y != in.y:
		return []point{from, to}
	case across && back:
		x := middle(from.x, to.x, out.x, in.x)
		return []point{from, {x, from.y}, {x, to.y}, to}
	case !across && !back:
		y := middle(from.y, to.y, out.y, in.y)
		return []point{from, {from.x, y}, {to.x, y}, to}
	case across:
		return []point{from, {to.x, from.y}, to}
	default:
		return []point{from, {from.x, to.y}, to}
	}
}

// label returns the label of an arrow: in the middle of its longest or first part.
func (a arrow) label(route []point) label {
	best := 0
	for i := range route[:len(route)-1] {
		if a.place != "first" && distance(route[i], route[i+1]) > distance(route[best], route[best+1]) {
			best = i
		}
	}
	from, to := route[best], route[best+1]
	middle := point{(from.x + to.x) / 2, (from.y + to.y) / 2}
	switch {
	case from.y == to.y:
		return label{point{middle.x, middle.y - 6}, "middle", "note", a.text}
	case a.place == "left":
		return label{point{middle.x - 8, middle.y + 4}, "end", "note", a.text}
	default:
		return label{point{middle.x + 8, middle.y + 4}, "start", "note", a.text}
	}
}

func distance(a, b point) float64 { return math.Abs(a.x-b.x) + math.Abs(a.y-b.y) }

// path returns a route as the data of an SVG path with round corners, and the head of the arrow as another one.
func path(route []point) (line, head string) {
	var out strings.Builder
	fmt.Fprintf(&out, "M%g %g", route[0].x, route[0].y)
	for i := 1; i < len(route)-1; i++ {
		corner := route[i]
		before, after := toward(corner, route[i-1]), toward(corner, route[i+1])
		fmt.Fprintf(&out, "L%g %gQ%g %g %g %g", before.x, before.y, corner.x, corner.y, after.x, after.y)
	}
	tip, last := route[len(route)-1], route[len(route)-2]
	length := distance(tip, last)
	d := point{(tip.x - last.x) / length, (tip.y - last.y) / length}
	base := point{tip.x - 9*d.x, tip.y - 9*d.y}
	fmt.Fprintf(&out, "L%g %g", base.x, base.y)
	return out.String(), fmt.Sprintf("M%g %gL%g %gL%g %gZ", tip.x-d.x, tip.y-d.y, base.x-4*d.y, base.y+4*d.x, base.x+4*d.y, base.y-4*d.x)
}

// toward returns a point near a corner, in the direction of another one.
func toward(corner, other point) point {
	length := distance(corner, other)
	radius := min(8, length/2)
	return point{corner.x + radius*(other.x-corner.x)/length, corner.y + radius*(other.y-corner.y)/length}
}
