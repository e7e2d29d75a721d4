package house_test

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"sigs.k8s.io/cluster-api/hack/house"
)

const root = `module example.com/root

go 1.26.0

replace example.com/root/api => ./api

require (
	example.com/root/api v0.0.0
	github.com/google/go-cmp v0.7.0
	golang.org/x/text v0.43.0 // indirect
	k8s.io/apimachinery v0.36.3
	k8s.io/klog/v2 v2.140.0
	k8s.io/utils v0.0.0-20260707023825-cf1189d6abe3
)
`

func TestModules(t *testing.T) {
	tests := []struct {
		reason string
		files  map[string]string
		want   []string
	}{
		{
			reason: "the same versions",
			files:  map[string]string{"api/go.mod": "module example.com/root/api\n\ngo 1.26.0\n\nrequire k8s.io/apimachinery v0.36.3\n"},
		},
		{
			reason: "direct requirements must have the root's version",
			files:  map[string]string{"hack/go.mod": "module example.com/root/hack\n\ngo 1.26.0\n\nrequire github.com/google/go-cmp v0.6.0\n"},
			want:   []string{"hack/go.mod:5: github.com/google/go-cmp v0.6.0, but the root module has v0.7.0"},
		},
		{
			reason: "indirect requirements, and those of only one module, may differ",
			files: map[string]string{"hack/go.mod": "module example.com/root/hack\n\ngo 1.26.0\n\nrequire (\n\tgolang.org/x/text v0.44.0 // indirect\n" +
				"\tk8s.io/utils v0.0.0-20200101000000-cf1189d6abe3 // indirect\n\tk8s.io/klog/v2 v2.130.0 // indirect\n\texample.com/x v1.0.0\n)\n"},
		},
		{
			reason: "modules of a Kubernetes release must have one version, even if indirect, of only one module, or replaced",
			files: map[string]string{"hack/go.mod": "module example.com/root/hack\n\ngo 1.26.0\n\nrequire k8s.io/api v0.36.0 // indirect\n\n" +
				"require k8s.io/code-generator v0.0.0\n\nreplace k8s.io/code-generator v0.0.0 => k8s.io/code-generator v0.36.1\n"},
			want: []string{
				"hack/go.mod:5: k8s.io/api v0.36.0, but the root module has v0.36.3",
				"hack/go.mod:9: k8s.io/code-generator v0.36.1, but the root module has v0.36.3",
			},
		},
		{
			reason: "modules of the repository are ignored",
			files:  map[string]string{"hack/go.mod": "module example.com/root/hack\n\ngo 1.26.0\n\nrequire example.com/root/api v0.0.1\n"},
		},
		{
			reason: "all modules must have one version of Go, even separate ones",
			files: map[string]string{
				"hack/go.mod":       "module example.com/root/hack\n\ngo 1.25.0\n",
				"hack/tools/go.mod": "module example.com/root/hack/tools\n\ngo 1.24.0\n\nrequire k8s.io/api v0.30.0\n",
			},
			want: []string{
				"hack/go.mod:3: go 1.25.0, but the root module has 1.26.0",
				"hack/tools/go.mod:3: go 1.24.0, but the root module has 1.26.0",
			},
		},
		{
			reason: "directories that the go command ignores",
			files:  map[string]string{"x/testdata/go.mod": "nonsense", ".cache/go.mod": "nonsense"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			tree := fstest.MapFS{house.RootModule: {Data: []byte(root)}}
			for name, content := range tt.files {
				tree[name] = &fstest.MapFile{Data: []byte(content)}
			}
			findings, err := house.CheckModules(tree, "hack/tools")
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, finding := range findings {
				got = append(got, finding.String())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

func TestInvalidModules(t *testing.T) {
	for reason, tree := range map[string]fstest.MapFS{
		"a repository without a root module": {"api/go.mod": {Data: []byte("module m\n\ngo 1.26.0\n")}},
		"an invalid go.mod file":             {"go.mod": {Data: []byte("nonsense")}},
		"a module without a version of Go":   {"go.mod": {Data: []byte("module m\n")}},
	} {
		if _, err := house.CheckModules(tree); err == nil {
			t.Errorf("%s was accepted", reason)
		}
	}
}
