package casts

import (
	"regexp"
	"strings"
	"testing"

	"github.com/charmbracelet/x/vt"
	"github.com/google/go-cmp/cmp"
)

// shown returns the rows of a terminal after something was written.
func shown(t *testing.T, n *names, written string) []row {
	t.Helper()
	terminal := vt.NewEmulator(24, 2)
	if _, err := terminal.WriteString(written); err != nil {
		t.Fatal(err)
	}
	return n.stable(screen(terminal))
}

func TestMarkup(t *testing.T) {
	for _, tc := range []struct{ reason, written, want string }{
		{"nothing", "", ""},
		{"a text with spaces", "a b", `<tspan x="16">a b</tspan>`},
		{"columns are where they are, whatever the font", "a   b", `<tspan x="16">a</tspan><tspan x="45">b</tspan>`},
		{"colors", "\x1b[32mTrue\x1b[0m \x1b[90mno\x1b[0m",
			`<tspan x="16" class="cast-green">True</tspan><tspan x="52.25" class="cast-gray">no</tspan>`},
		{"bold, and white, which is the color of texts", "\x1b[97;1mx\x1b[0m", `<tspan x="16" class="cast-bold">x</tspan>`},
		{"overwritten texts", "old text\r\x1b[Knew", `<tspan x="16">new</tspan>`},
		{"letters of HTML", "<none>", `<tspan x="16">&lt;none&gt;</tspan>`},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, shown(t, newNames(), tc.written)[0].markup()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestStable checks that recordings with other generated names are equal.
func TestStable(t *testing.T) {
	first, second := newNames(), newNames()
	for _, texts := range [][2]string{
		{"demo-abc12 1s", "demo-xyz89 1s"},
		{"demo-md-0-abc12-77777", "demo-md-0-xyz89-44444"},
		{"A name in the next: demo-abc12", "A name in the next: demo-xyz89"},
	} {
		a, b := shown(t, first, texts[0]), shown(t, second, texts[1])
		if !same(a, b) || strings.Contains(string(a[0].letters)+string(a[1].letters), "abc12") {
			t.Errorf("%q differs from %q", string(a[0].letters), string(b[0].letters))
		}
	}
	if a, b := shown(t, first, "demo-abc12"), shown(t, first, "demo-77777"); same(a, b) {
		t.Error("two names became one")
	}
	if a := shown(t, first, "demo-cluster stays"); !strings.HasPrefix(string(a[0].letters), "demo-cluster stays") {
		t.Errorf("a name that was not generated became %q", string(a[0].letters))
	}
}

// TestSVG checks the strip of frames, and what remains of it without motion.
func TestSVG(t *testing.T) {
	n := newNames()
	frames := []frame{{shown(t, n, "one"), 0.5}, {shown(t, n, "one\r\ntwo"), 1.5}}
	drawn := svg(cast{name: "c", prefix: "x", title: "T", desc: "D", rows: 2}, frames, "")
	ids := regexp.MustCompile(`id="(x\w+)"><tspan x="16">(?:one|two)<`).FindAllStringSubmatch(drawn, -1)
	if len(ids) != 2 {
		t.Fatalf("each row is there once, not %q:\n%s", ids, drawn)
	}
	drawn = strings.NewReplacer(ids[0][1], "ONE", ids[1][1], "TWO").Replace(drawn)
	for reason, want := range map[string]string{
		"without motion, it is the last frame": "<g class=\"still\">\n<use href=\"#ONE\" y=\"16\"/><use href=\"#TWO\" y=\"32\"/>\n</g>",
		"without animation, too":               `<g class="film" transform="translate(0 -48)">`,
		"frames have their time":               `dur="2.0s" values="0 0;0 -48" keyTimes="0;0.25"`,
		"the first frame":                      "<g transform=\"translate(0 0)\">\n<use href=\"#ONE\" y=\"16\"/>\n</g>",
		"the second frame is below it":         "<g transform=\"translate(0 48)\">\n<use href=\"#ONE\" y=\"16\"/><use href=\"#TWO\" y=\"32\"/>\n</g>",
	} {
		if !strings.Contains(drawn, want) {
			t.Errorf("%s: %s is not in\n%s", reason, want, drawn)
		}
	}
}

// TestPrefixes checks that a page can have all casts.
func TestPrefixes(t *testing.T) {
	used := map[string]bool{}
	for _, c := range all() {
		if used[c.prefix] || c.title == "" || c.desc == "" {
			t.Errorf("%s has the prefix of another one, or no title or description", c.name)
		}
		used[c.prefix] = true
	}
}
