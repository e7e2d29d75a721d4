package pictures

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// repository returns a file of the repository.
func repository(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(path)))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// source returns a picture.
func source(t *testing.T, name string) *picture {
	t.Helper()
	p, err := parse(name, repository(t, Folder+"/"+name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// matches returns the first group of all matches.
func matches(text, expression string) []string {
	var found []string
	for _, match := range regexp.MustCompile(expression).FindAllStringSubmatch(text, -1) {
		found = append(found, match[1])
	}
	return found
}

// words returns all texts of a picture.
func (p *picture) words() []string {
	var all []string
	for _, b := range slices.Concat(p.areas, p.boxes) {
		all = append(all, b.lines...)
	}
	for _, t := range p.texts {
		all = append(all, t.text)
	}
	return all
}

// TestNamesInPictures checks that pictures have all names that the code has.
func TestNamesInPictures(t *testing.T) {
	for _, tc := range []struct {
		picture string
		names   []string
		// except are never set.
		except []string
	}{
		{
			picture: "machine-phases", except: []string{"Deleted", "Unknown"},
			names: matches(repository(t, "api/core/v1beta2/phases.go"), `MachinePhase\w+ MachinePhase = "(\w+)"`),
		},
		{picture: "move", names: matches(repository(t, "clusterctl/move/journal/journal.go"), `\w+ Phase = "(\w+)"`)},
		{picture: "upgrade", names: matches(repository(t, "docs/book/lifecycle-hooks.md"), "(?m)^\\| `(\\w+Upgrade)` \\|")},
		{picture: "deletion", names: []string{
			clusterv1.ClusterFinalizer, clusterv1.MachineDeploymentFinalizer, clusterv1.MachineSetFinalizer, clusterv1.MachinePoolFinalizer,
			clusterv1.MachineFinalizer, controlplanev1.KubeadmControlPlaneFinalizer,
		}},
	} {
		t.Run(tc.picture, func(t *testing.T) {
			if len(tc.names) < 3 {
				t.Fatalf("only %q were found", tc.names)
			}
			has := source(t, tc.picture).words()
			for _, name := range tc.names {
				if !slices.Contains(has, name) && !slices.Contains(tc.except, name) {
					t.Errorf("the picture does not have %s", name)
				}
			}
		})
	}
}

// TestOrderOfDeletion compares the boxes of the picture, from the top to the bottom, with the steps of the controllers.
func TestOrderOfDeletion(t *testing.T) {
	for _, tc := range []struct {
		file, heading string
		boxes         map[string]string
		unseen        []string
	}{
		{"providers/core/internal/cluster/doc.go", "// Deletion waits", map[string]string{
			"BeforeClusterDelete": "held", "Workers": "delete-children", "Control plane": "delete-control-plane",
			"Infrastructure of the cluster": "delete-infrastructure", "Cluster": "finish",
		}, nil},
		{"providers/core/internal/machine/doc.go", "Deletion:", map[string]string{
			"pre-drain hooks": "pre-drain-hooks", "drain of the Node": "drain", "volumes detached": "volumes",
			"pre-terminate hooks": "pre-terminate-hooks",
			"infrastructure":      "delete-infrastructure", "bootstrap": "delete-bootstrap", "Node": "delete-node",
		}, []string{"node-work", "finish"}},
	} {
		_, after, _ := strings.Cut(repository(t, tc.file), tc.heading)
		after, _, _ = strings.Cut(after, "// Last") // Other steps follow.
		steps := slices.DeleteFunc(matches(after, `(?m)^//\t([a-z-]+)  `), func(s string) bool { return slices.Contains(tc.unseen, s) })
		boxes := source(t, "deletion").boxes
		slices.SortStableFunc(boxes, func(a, b box) int { return int(a.y - b.y) })
		var drawn []string
		for _, b := range boxes {
			if step := tc.boxes[b.lines[0]]; step != "" {
				drawn = append(drawn, step)
			}
		}
		if diff := cmp.Diff(steps, drawn); diff != "" {
			t.Errorf("%s: -steps +picture:\n%s", tc.file, diff)
		}
	}
}

// TestChecksOfMachines compares the number of checks with the table of the page.
func TestChecksOfMachines(t *testing.T) {
	_, table, _ := strings.Cut(repository(t, "docs/book/healthchecks.md"), "## When a Machine is unhealthy")
	table, _, _ = strings.Cut(table, "\n## ")
	rows := matches(table, "(?m)^\\| `(\\w+)` (?:\\(v1beta1: `\\w+`\\) )?\\|")
	var numbers []string
	for _, word := range source(t, "health-check").words() {
		numbers = append(numbers, matches(word, `^([0-9]) `)...)
	}
	if want := []string{"1", "2", "3", "4", "5", "6"}[:min(6, len(rows))]; !slices.Equal(numbers, want) || len(rows) != 6 {
		t.Errorf("the picture has the checks %q, the page %q", numbers, rows)
	}
}

// TestKindsInPictures checks that what looks like a kind is one.
func TestKindsInPictures(t *testing.T) {
	definitions, err := filepath.Glob(filepath.Join("..", "..", "providers", "*", "config", "crd", "*.yaml"))
	if err != nil || len(definitions) == 0 {
		t.Fatalf("%d definitions: %v", len(definitions), err)
	}
	kinds := map[string]bool{}
	for _, file := range definitions {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range matches(string(content), `(?m)^ {4}kind: (\w+)$`) {
			kinds[kind] = true
		}
	}
	sources, err := filepath.Glob(filepath.Join("..", "..", Folder, "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range sources {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		for _, text := range source(t, name).words() {
			for _, word := range matches(text, `\b((?:InMemory|Kubeadm|Machine|Cluster|Core)[A-Za-z]*[a-z][A-Z]\w*)\b`) {
				if !kinds[word] && !kinds[strings.TrimSuffix(word, "s")] {
					t.Errorf("%s: %s is no kind", name, word)
				}
			}
		}
	}
}
