package debian_test

import (
	"testing"
	"testing/fstest"

	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/nodeimage/internal/debian"
)

func TestMirror(t *testing.T) {
	tests := []struct {
		reason, file, content, want string
	}{
		{reason: "a line of sources.list", file: "etc/apt/sources.list", content: "deb https://mirror.example/debian bookworm main\n", want: "https://mirror.example/debian"},
		{
			reason: "a stanza, with security updates before it", file: "etc/apt/sources.list.d/debian.sources",
			content: "Types: deb\nURIs: http://mirror.example/debian-security\n\nTypes: deb\n# URIs: http://old.example/debian\nURIs: http://mirror.example/debian/\n",
			want:    "http://mirror.example/debian",
		},
		{reason: "sources of other software", file: "etc/apt/sources.list.d/other.list", content: "deb https://other.example/apt stable main\n"},
		{reason: "a machine without apt", file: "etc/fedora-release"},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			machine := fstest.MapFS{test.file: {Data: []byte(test.content)}}
			if got := debian.Mirror(machine); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
