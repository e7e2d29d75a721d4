package manual

import (
	"cmp"
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strings"
)

// Weights of words by where they are. With at most ten words in a query, a title outweighs all headings, and a heading all texts.
const (
	inTitle   = 20000
	inHeading = 1000
	inText    = 99
)

// excerpt is how much of a section's text search results show, in bytes.
const excerpt = 180

var (
	words = regexp.MustCompile(`[A-Za-z0-9]+`)
	// parts are those of a name in camel case: KubeadmControlPlane, KCPs, etcdMember.
	parts = regexp.MustCompile(`[A-Z]+s?(?:[^A-Za-z]|$)|[A-Z]?[a-z]+|[A-Z]+|[0-9]+`)
)

// index is what the script of the site searches.
type index struct {
	// Sections are page, heading, link and the start of the text. The heading of a page's start is the page.
	Sections [][4]string `json:"sections"`
	// Terms are pairs of sections and weights, by word.
	Terms map[string][]int `json:"terms"`
	// Ignored are words that are in no term, and that are left out of queries.
	Ignored []string `json:"ignored"`
}

// ignored are words of questions that do not tell what is looked for.
func ignored() []string {
	return strings.Fields("a an and are as at be by can do does for from has how i if in is it my not of on or that the this to " +
		"what when where which why with")
}

// entry is a section with its page.
type entry struct {
	file, page, summary string
	section
}

// indexed returns the index of sections.
func indexed(entries []entry) *index {
	x := &index{Terms: map[string][]int{}, Ignored: ignored()}
	counts := map[string]map[int]int{}
	for i, e := range entries {
		heading := e.heading
		if e.level == 1 {
			heading = e.page
		}
		x.Sections = append(x.Sections, [4]string{e.page, heading, e.link(), start(cmp.Or(e.summary, e.text))})
		for _, term := range terms(e.summary + " " + e.text) {
			if counts[term] == nil {
				counts[term] = map[int]int{}
			}
			counts[term][i]++
		}
	}
	weights := map[string]map[int]int{}
	raise := func(term string, section, weight int) {
		if weights[term] == nil {
			weights[term] = map[int]int{}
		}
		weights[term][section] = max(weights[term][section], weight)
	}
	for term, sections := range counts {
		for section, n := range sections {
			raise(term, section, relevance(n, len(sections), len(entries)))
		}
	}
	for i, e := range entries {
		for _, term := range terms(e.heading) {
			raise(term, i, inHeading)
		}
		if e.level == 1 {
			for _, term := range terms(e.page + " " + e.heading) {
				raise(term, i, inTitle)
			}
		}
	}
	for _, word := range x.Ignored {
		delete(weights, term(word))
	}
	for term, sections := range weights {
		for section := range entries {
			if weight := sections[section]; weight > 0 {
				x.Terms[term] = append(x.Terms[term], section, weight)
			}
		}
	}
	return x
}

// relevance returns the weight of a word that a text has n times, if so many sections of all have it: rare words weigh more.
func relevance(n, sections, all int) int {
	rare := math.Log(float64(1+all)/float64(sections)) / math.Log(float64(1+all))
	return max(1, int(math.Round(inText*rare*float64(n)/float64(n+2))))
}

// link returns the link to a section; the title of a page is its start.
func (e entry) link() string {
	if e.level == 1 {
		return e.file
	}
	return e.file + "#" + e.id
}

// script returns the index as a script, because pages that are opened from a disk may not read other files.
func (x *index) script() ([]byte, error) {
	raw, err := json.Marshal(x)
	if err != nil {
		return nil, err
	}
	return slices.Concat([]byte("manualIndex = "), raw, []byte(";\n")), nil
}

// terms returns the words of a text, in lower case and without the s of a plural. Names in camel case are words, and so are their parts.
// The script of the site does the same with the words of a query, except for names.
func terms(text string) []string {
	var found []string
	for _, word := range words.FindAllString(text, -1) {
		found = append(found, term(word))
		if split := parts.FindAllString(word, -1); len(split) > 1 {
			for _, part := range split {
				found = append(found, term(part))
			}
		}
	}
	return found
}

func term(word string) string {
	word = strings.ToLower(word)
	if len(word) > 3 && strings.HasSuffix(word, "s") && !strings.HasSuffix(word, "ss") {
		return word[:len(word)-1]
	}
	return word
}

// start returns the start of a text, up to a space.
func start(text string) string {
	if len(text) <= excerpt {
		return text
	}
	cut := strings.ToValidUTF8(text[:excerpt], "")
	if at := strings.LastIndexByte(cut, ' '); at > 0 {
		cut = cut[:at]
	}
	return cut + " …"
}
