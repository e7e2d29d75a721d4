package book

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	tests := []struct {
		reason  string
		text    string
		want    []block
		wantErr string
	}{
		{
			reason: "blocks have a line number, a mark and their code",
			text:   "a\n```sh\nb\n  c\n```\nd\n\n```text\ne\n```\n",
			want:   []block{{line: 2, mark: "sh", code: "b\n  c\n"}, {line: 8, mark: "text", code: "e\n"}},
		},
		{reason: "a block may be indented in a list", text: "1. a\n   ```go\n   b\n   ```\n", want: []block{{line: 2, mark: "go", code: "   b\n"}}},
		{reason: "a block without a mark would not be run", text: "```\na\n```\n", wantErr: `line 1: unknown mark ""`},
		{reason: "a block with a misspelled mark would not be run", text: "```shell\na\n```\n", wantErr: `line 1: unknown mark "shell"`},
		{reason: "a block that is not closed would contain the rest of the page", text: "```sh\na\n", wantErr: "line 1: a block is not closed"},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			got, err := parse(tc.text)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Errorf("the error is %v, want %s", err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(block{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestScript(t *testing.T) {
	p := page{name: "p.md", blocks: []block{
		{line: 1, mark: "sh", code: "x=1\n"}, {line: 3, mark: "text", code: "echo not run\n"},
		{line: 5, mark: "sh", code: "echo $x\nfalse | true\necho not reached\n"},
	}}
	out, err := exec.Command("bash", "-c", p.script()).CombinedOutput()
	if err == nil {
		t.Error("a command that fails in a pipe does not fail the page")
	}
	if diff := cmp.Diff("1\nthe block at p.md:5 failed\n", string(out)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if script := (page{blocks: []block{{mark: "text", code: "a\n"}}}).script(); script != "" {
		t.Errorf("a page without commands has the script %q", script)
	}
}
