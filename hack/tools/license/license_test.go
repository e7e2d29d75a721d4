package license

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const mit = `MIT License

Copyright (c) 2020 The authors of the box

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation
files (the "Software"), to deal in the Software without restriction, including without limitation the rights to use, copy,
modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software
is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES
OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE
LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR
IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
`

// terms is more restrictive than MIT, so it must not be identified as MIT.
const terms = `You may look at this software. You may not copy it, change it, sell it, or run it on more than one computer.`

func TestIdentify(t *testing.T) {
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	golang, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "LICENSE"))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		reason string
		text   string
		want   string
	}{
		{reason: "copyright lines and line breaks are ignored", text: mit, want: "MIT"},
		{reason: "two licenses that differ in one clause", text: string(golang), want: "BSD-3-Clause"},
		{reason: "custom terms are unknown", text: terms},
		{reason: "an empty file is unknown"},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			got, err := Identify([]byte(tt.text))
			if got != tt.want || errors.Is(err, ErrUnknown) != (tt.want == "") {
				t.Errorf("%s: got %q, %v, want %q", tt.reason, got, err, tt.want)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	policy := Policy{Allowed: []string{"MIT"}, Read: map[string]string{"example.com/read NOTICE/LICENSE": "MIT", "example.com/gpl LICENSE": "GPL-3.0", "example.com/none -": "MIT", "example.com/gplnone -": "GPL-3.0"}}
	tests := []struct {
		reason string
		files  map[string]string
		module string
		dir    string
		want   []string
	}{
		{reason: "the license at the root of a module applies to its packages", files: map[string]string{"LICENSE": mit, "LICENSE.docs": terms}, module: "example.com/m@v1.0.0", dir: "a/b"},
		{reason: "a directory may have its own license", files: map[string]string{"LICENSE": mit, "a/COPYING.txt": terms}, module: "example.com/m@v1.0.0", dir: "a/b",
			want: []string{"example.com/m@v1.0.0: a/COPYING.txt is not the text of a known license"}},
		{reason: "all of several licenses count", files: map[string]string{"LICENSE": mit, "LICENCE-other": terms}, module: "example.com/m@v1.0.0", dir: ".",
			want: []string{"example.com/m@v1.0.0: LICENCE-other is not the text of a known license"}},
		{reason: "code and directories are not license files", files: map[string]string{"license.go": mit, "license/x.go": mit}, module: "example.com/m@v1.0.0", dir: ".",
			want: []string{"example.com/m@v1.0.0 has no license file"}},
		{reason: "a reviewed module without a license file", module: "example.com/none@v1.0.0", dir: "."},
		{reason: "one that is not allowed", module: "example.com/gplnone@v1.0.0", dir: ".", want: []string{"example.com/gplnone@v1.0.0 has no license file"}},
		{reason: "a reviewed license", files: map[string]string{"NOTICE/LICENSE": terms}, module: "example.com/read@v1.0.0", dir: "NOTICE"},
		{reason: "a reviewed license that is not allowed", files: map[string]string{"LICENSE": mit}, module: "example.com/gpl@v1.0.0", dir: ".",
			want: []string{"example.com/gpl@v1.0.0: LICENSE is GPL-3.0, which is not allowed"}},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			root := t.TempDir()
			write(t, filepath.Join(root, tt.dir, "code.go"), "package x")
			for name, text := range tt.files {
				write(t, filepath.Join(root, name), text)
			}
			linked := Package{Module: tt.module, Root: root, Dir: filepath.Join(root, tt.dir)}
			findings, err := policy.Check([]Package{linked, linked})
			if err != nil {
				t.Fatal(err)
			}
			for i := range findings {
				// The closest license does not matter here.
				findings[i], _, _ = strings.Cut(findings[i], " license: ")
				if strings.HasSuffix(findings[i], " known") {
					findings[i] += " license"
				}
			}
			if diff := cmp.Diff(tt.want, findings); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestLinked(t *testing.T) {
	packages, err := Linked(t.Context(), "..", "./cmd/licenses")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, p := range packages {
		path, version, _ := strings.Cut(p.Module, "@")
		found[path] = true
		if version == "" || !strings.HasPrefix(p.Dir, p.Root) {
			t.Errorf("%+v", p)
		}
	}
	for path, want := range map[string]bool{"github.com/go-enry/go-license-detector/v4": true, "sigs.k8s.io/cluster-api/hack/tools": false, "github.com/golangci/golangci-lint/v2": false, "": false} {
		if found[path] != want {
			t.Errorf("%q is linked: %v, want %v", path, found[path], want)
		}
	}
	if _, err := Linked(t.Context(), "..", "./nothing"); err == nil {
		t.Error("a program that does not exist was accepted")
	}
}
