package casts

import (
	"fmt"
	"hash/fnv"
	"html"
	"strconv"
	"strings"

	"sigs.k8s.io/cluster-api/hack/pictures"
)

// Sizes in pixels: of a letter, around the text, and of the bar above it.
const (
	letterWidth, rowHeight = 7.25, 16
	margin, bar            = 16, 28
)

// svg draws a cast: a strip of all frames behind a window, and its last frame for readers who do not want anything to move, and for paper.
// Scripts and style sheets of sites are not needed, so that it also moves where it is shown as an image.
func svg(c cast, frames []frame, style string) string {
	width, height := columns*letterWidth+2*margin, float64(c.rows*rowHeight+margin)
	d := &drawing{name: c.prefix, ids: map[string]string{}, used: map[string]bool{}}
	var strip strings.Builder
	for i, f := range frames {
		fmt.Fprintf(&strip, "<g transform=\"translate(0 %g)\">\n%s\n</g>\n", float64(i)*height, d.frame(f))
	}
	still := d.frame(frames[len(frames)-1])

	var out strings.Builder
	out.WriteString(pictures.Open(c.name, c.title, c.desc, style, width, height+bar))
	fmt.Fprintf(&out, "<rect class=\"area\" x=\"0.5\" y=\"0.5\" width=\"%g\" height=\"%g\" rx=\"8\"/>\n", width-1, height+bar-1)
	fmt.Fprintf(&out, "<path class=\"dots\" d=\"M18 15h0M34 15h0M50 15h0\"/><text class=\"small middle\" x=\"%g\" y=\"19\">%s</text>\n",
		width/2, html.EscapeString(c.title))
	fmt.Fprintf(&out, "<g class=\"cast\">\n<defs>\n%s</defs>\n<svg y=\"%d\" width=\"%g\" height=\"%g\">\n",
		d.rows.String(), bar, width, height)
	fmt.Fprintf(&out, "<g class=\"still\">\n%s\n</g>\n", still)
	offsets, times, total := timing(frames, height)
	fmt.Fprintf(&out, "<g class=\"film\" transform=\"translate(0 %g)\">\n", -height*float64(len(frames)-1))
	fmt.Fprintf(&out, "<animateTransform attributeName=\"transform\" type=\"translate\" calcMode=\"discrete\" repeatCount=\"indefinite\" "+
		"dur=\"%.1fs\" values=\"%s\" keyTimes=\"%s\"/>\n%s</g>\n</svg>\n</g>\n</svg>\n", total, offsets, times, strip.String())
	return out.String()
}

// timing returns where the strip is, and since when, as a part of the whole time in seconds.
func timing(frames []frame, height float64) (offsets, times string, total float64) {
	for _, f := range frames {
		total += f.seconds
	}
	var o, t []string
	passed := 0.0
	for i, f := range frames {
		o = append(o, fmt.Sprintf("0 %g", 0-height*float64(i)))
		t = append(t, strings.TrimRight(strings.TrimRight(fmt.Sprintf("%.4f", passed/total), "0"), "."))
		passed += f.seconds
	}
	return strings.Join(o, ";"), strings.Join(t, ";"), total
}

// drawing has each row once, which frames use. IDs follow from what is in a row, so that recordings can be compared line by line.
type drawing struct {
	// name is the start of IDs.
	name string
	// ids are those of rows, and used those of all.
	ids  map[string]string
	used map[string]bool
	rows strings.Builder
}

// frame returns the rows of a frame.
func (d *drawing) frame(f frame) string {
	var out strings.Builder
	for i, r := range f.rows {
		markup := r.markup()
		if markup == "" {
			continue
		}
		id := d.ids[markup]
		if id == "" {
			id = d.id(markup)
			d.ids[markup] = id
			fmt.Fprintf(&d.rows, "<text class=\"cast-text\" id=\"%s\">%s</text>\n", id, markup)
		}
		fmt.Fprintf(&out, "<use href=\"#%s\" y=\"%d\"/>", id, (i+1)*rowHeight)
	}
	return out.String()
}

// id returns a new ID for a row.
func (d *drawing) id(markup string) string {
	hash := fnv.New32a()
	fmt.Fprint(hash, markup)
	for sum := hash.Sum32(); ; sum++ {
		id := d.name + strconv.FormatUint(uint64(sum%(36*36*36*36)), 36)
		if !d.used[id] {
			d.used[id] = true
			return id
		}
	}
}

// gap reports whether a text ends here: two spaces follow, or nothing.
func (r row) gap(at int) bool {
	return r.letters[at] == ' ' && (at+1 == len(r.letters) || r.letters[at+1] == ' ')
}

// markup returns the texts of a row. Each is where it is in the terminal, whatever the width of letters.
func (r row) markup() string {
	var out strings.Builder
	for at := 0; at < len(r.letters); {
		if r.letters[at] == ' ' {
			at++
			continue
		}
		end := at + 1
		for end < len(r.letters) && r.classes[end] == r.classes[at] && !r.gap(end) {
			end++
		}
		class := ""
		if r.classes[at] != "" {
			class = fmt.Sprintf(" class=\"%s\"", r.classes[at])
		}
		text := strings.TrimRight(string(r.letters[at:end]), " ")
		fmt.Fprintf(&out, "<tspan x=\"%g\"%s>%s</tspan>", margin+letterWidth*float64(at), class, html.EscapeString(text))
		at = end
	}
	return out.String()
}
