package cloudinit

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	"sigs.k8s.io/cluster-api/providers/bootstrap-kubeadm/internal/bootstrapdata"
)

// TestNothingIsInjected sets every string of a spec to text with YAML syntax.
func TestNothingIsInjected(t *testing.T) {
	for _, evil := range []string{
		"x\nruncmd:\n- \"touch /evil\"\n", "\tx\nbootcmd: [evil]", "  x\ny", "\n\tx", "x\n\nbootcmd: [evil]", "x\r\nbootcmd: [evil]", "x\u0085bootcmd: [evil]", "x\u2028bootcmd: [evil]",
		"x\n...\n---\nbootcmd: [evil]", "]\nbootcmd: [evil]", "\"\nbootcmd: [evil]", "'\nbootcmd: [evil]", "# comment", ": ", "- - -", "? x", "&a [*a]", "*a",
		"!!binary eA==", "!evil x", "|\n  x", ">-", "%YAML 1.1", "@x", "`x`", "{a: b}", "[a, b]", "yes", "~", "0x10", "1:30", "2001-01-01", "\ufeffx", "\x00\x1b[31m",
	} {
		t.Run(fmt.Sprintf("%q", evil), func(t *testing.T) {
			in := bootstrapdata.Input{
				Files:       []bootstrapv1.File{{Path: evil, Owner: evil, Permissions: evil, Encoding: bootstrapv1.Encoding(evil), Content: evil}},
				PreCommands: []string{evil}, PostCommands: []string{evil},
				Users: []bootstrapv1.User{{Name: evil, Gecos: evil, Groups: evil, HomeDir: evil, Shell: evil, Passwd: evil, PrimaryGroup: evil, Sudo: evil, SSHAuthorizedKeys: []string{evil}}},
				NTP:   &bootstrapv1.NTP{Servers: []string{evil}},
				DiskSetup: bootstrapv1.DiskSetup{
					Partitions:  []bootstrapv1.Partition{{Device: evil, TableType: evil}},
					Filesystems: []bootstrapv1.Filesystem{{Device: evil, Filesystem: evil, Label: evil, Partition: evil, ReplaceFS: evil, ExtraOpts: []string{evil}}},
				},
				Mounts:  []bootstrapv1.MountPoints{{evil, evil}},
				Kubeadm: evil,
			}
			got, err := Join(in, true, true)
			if err != nil {
				t.Fatal(err)
			}
			var root yaml.Node
			decoder := yaml.NewDecoder(strings.NewReader(string(got)))
			if err := decoder.Decode(&root); err != nil {
				t.Fatalf("not YAML: %v\n%s", err, got)
			}
			if err := decoder.Decode(&yaml.Node{}); err == nil {
				t.Errorf("there is a second document:\n%s", got)
			}
			var keys []string
			for i, n := range root.Content[0].Content {
				if i%2 == 0 {
					keys = append(keys, n.Value)
				}
			}
			if diff := cmp.Diff([]string{"write_files", "runcmd", "ntp", "users", "disk_setup", "fs_setup", "mounts"}, keys); diff != "" {
				t.Errorf("sections, -want +got:\n%s", diff)
			}
			const places = 5 + 1 + 2 + 9 + 1 + 2 + 6 + 2
			if n := countStrings(&root, evil); n != places {
				t.Errorf("the string arrives unchanged, as a string, in %d places, want %d:\n%s", n, places, got)
			}
		})
	}
}

// countStrings counts where a string stands that a parser only sees as a string.
func countStrings(n *yaml.Node, s string) int {
	count := 0
	if n.Kind == yaml.ScalarNode && n.Value == s && n.ShortTag() == "!!str" && (n.Style != 0 || !slices.Contains(otherTypes(), s)) {
		count++
	}
	for _, child := range n.Content {
		count += countStrings(child, s)
	}
	return count
}

// otherTypes are texts that are no strings unless they are quoted, by YAML 1.1, which cloud-init reads, or by 1.2.
func otherTypes() []string { return []string{"yes", "~", "0x10", "1:30", "2001-01-01"} }
