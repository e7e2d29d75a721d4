package explain_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"sigs.k8s.io/cluster-api/clusterctl/command/root"
	"sigs.k8s.io/cluster-api/clusterctl/explain"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/clusterctl/overview"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
)

// TestOutputsAgree runs get clusters, describe and explain on the objects of each transcript: what they print for users and for
// programs is the same.
func TestOutputsAgree(t *testing.T) {
	dir := t.TempDir()
	explain.EachTranscript(t, func(t *testing.T, in explain.Input, _ string) {
		if in.Objects.Cluster(in.Cluster) == nil {
			return
		}
		c := &commands{t: t, dir: dir, client: clientOf(in)}
		c.get()
		c.describe()
		c.explain()
	})
}

// clientOf returns a client of an API server with the objects.
func clientOf(in explain.Input) client.WithWatch {
	scheme, mapper := runtime.NewScheme(), meta.NewDefaultRESTMapper(nil)
	_ = clientgoscheme.AddToScheme(scheme) // cannot fail
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Event"), meta.RESTScopeNamespace)
	builder := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).
		WithIndex(&corev1.Event{}, "type", func(o client.Object) []string { return []string{o.(*corev1.Event).Type} })
	for _, u := range in.Objects.All() {
		kind := u.GroupVersionKind()
		if !scheme.Recognizes(kind) {
			scheme.AddKnownTypeWithName(kind, &unstructured.Unstructured{})
			scheme.AddKnownTypeWithName(kind.GroupVersion().WithKind(kind.Kind+"List"), &unstructured.UnstructuredList{})
			mapper.Add(kind, meta.RESTScopeNamespace)
		}
		if u = u.DeepCopy(); u.GetDeletionTimestamp() != nil && len(u.GetFinalizers()) == 0 {
			u.SetFinalizers([]string{"example.com/test"}) // The fake rejects it otherwise.
		}
		u.SetManagedFields(nil) // The fake rejects those of the transcripts.
		builder.WithObjects(u)
	}
	return builder.Build()
}

// commands runs clusterctl.
type commands struct {
	t      *testing.T
	dir    string
	client client.WithWatch
}

// run returns what a command prints.
func (c *commands) run(args ...string) string {
	c.t.Helper()
	streams, buffers := iostreams.Test()
	f := factory.New(streams, func(name string) (string, bool) {
		value, ok := map[string]string{"XDG_CONFIG_HOME": c.dir, "HOME": c.dir, "CLUSTERCTL_DISABLE_VERSIONCHECK": "true"}[name]
		return value, ok
	}, nil)
	f.Connect = func(management.Kubeconfig) (*management.Cluster, error) {
		return &management.Cluster{Client: c.client, Namespace: "ns"}, nil
	}
	if err := root.Run(c.t.Context(), f, args); err != nil {
		c.t.Fatalf("%q: %v", args, err)
	}
	return buffers.Out.String()
}

// read decodes the JSON of a command, and compares it with its YAML.
func (c *commands) read(into any, args ...string) {
	c.t.Helper()
	asJSON, asYAML := c.run(append(args, "-o", "json")...), c.run(append(args, "-o", "yaml")...)
	converted, err := yaml.JSONToYAML([]byte(asJSON))
	if err != nil || string(converted) != asYAML {
		c.t.Errorf("%q: JSON and YAML differ: %v\n%s\n%s", args, err, asJSON, asYAML)
	}
	if err := json.Unmarshal([]byte(asJSON), into); err != nil {
		c.t.Fatal(err)
	}
}

var columns = regexp.MustCompile(` {3,}`)

func (c *commands) get() {
	c.t.Helper()
	var list overview.List
	c.read(&list, "get", "clusters")
	lines := strings.Split(strings.TrimSpace(c.run("get", "clusters", "-o", "wide", "--no-headers")), "\n")
	names := strings.Fields(c.run("get", "clusters", "-o", "name"))
	if len(list.Items) != len(lines) || len(names) != len(lines) {
		c.t.Fatalf("get has %d items, %d lines and %d names", len(list.Items), len(lines), len(names))
	}
	for i := range list.Items {
		r := &list.Items[i]
		version := r.Version
		if r.CurrentVersion != "" {
			version = r.CurrentVersion + " -> " + r.Version
		}
		cells := append(columns.Split(lines[i], -1), "")
		or := func(text string) string { return map[bool]string{true: "-", false: text}[text == ""] }
		got := []string{cells[0], cells[1], cells[2], cells[4], cells[5], cells[7], cells[11], names[i]}
		want := []string{
			r.Name, or(r.Class), or(version), r.Workers.String(), or(r.Ready), or(r.Phase), r.Activity, "cluster.cluster.x-k8s.io/" + r.Name,
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			c.t.Errorf("get: the table has %q, JSON %q", got, want)
		}
	}
}

func (c *commands) describe() {
	c.t.Helper()
	args := []string{"describe", "cluster", "c1", "--grouping=false", "--show-resourcesets", "--show-healthchecks"}
	var document tree.Document
	c.read(&document, args...)
	lines := strings.Split(strings.TrimRight(c.run(append(args, "-o", "wide")...), "\n"), "\n")[1:]
	names := c.run(append(args, "-o", "name")...)
	var walk func(d *tree.Document)
	walk = func(d *tree.Document) {
		if len(lines) == 0 {
			c.t.Fatalf("describe: %s is in JSON only", d.Name)
		}
		line := lines[0]
		lines = lines[1:]
		texts := []string{d.Name, d.Kind, d.Version, d.Node}
		if d.Ready != nil {
			texts = append(texts, d.Ready.Status, d.Ready.Severity, d.Ready.Reason, d.Ready.Message)
		}
		for _, text := range texts {
			if !strings.Contains(line, text) {
				c.t.Errorf("describe: %q of JSON is not in %q", text, line)
			}
		}
		if d.Deleting != strings.Contains(line, "(deleting)") {
			c.t.Errorf("describe: deleting is %v in JSON, and the line is %q", d.Deleting, line)
		}
		if d.APIVersion != "" && !strings.Contains(names, tree.ReferenceName(d.APIVersion, d.Kind, d.Name)+"\n") {
			c.t.Errorf("describe: the names lack %s %s:\n%s", d.Kind, d.Name, names)
		}
		for _, condition := range d.Conditions {
			if !strings.Contains(lines[0], condition.Type) || !strings.Contains(lines[0], condition.Status) {
				c.t.Errorf("describe: condition %s of JSON is not in %q", condition.Type, lines[0])
			}
			lines = lines[1:]
		}
		for i := range d.Children {
			walk(&d.Children[i])
		}
	}
	if walk(&document); len(lines) > 0 {
		c.t.Errorf("describe: not in JSON:\n%s", strings.Join(lines, "\n"))
	}
}

func (c *commands) explain() {
	c.t.Helper()
	var report explain.Report
	c.read(&report, "explain", "c1")
	text, names := c.run("explain", "c1"), c.run("explain", "c1", "-o", "name")
	first, _, _ := strings.Cut(text, "\n")
	if report.Healthy != strings.Contains(first, "waits for nothing") || report.Healthy != (len(report.Causes) == 0) || report.Healthy != (names == "") {
		c.t.Errorf("explain: healthy is %v in JSON with %d causes, and the text is:\n%s", report.Healthy, len(report.Causes), text)
	}
	for i := range report.Causes {
		cause := &report.Causes[i]
		texts := []string{cause.Object.String(), string(cause.Reason), strings.TrimSpace(cause.Message)}
		if i == 0 {
			texts = append(texts, cause.Actions...)
		}
		for _, part := range texts {
			if i <= 10 && !strings.Contains(text, part) {
				c.t.Errorf("explain: %q of JSON is not in:\n%s", part, text)
			}
		}
		if name := tree.ReferenceName(cause.Object.APIVersion, cause.Object.Kind, cause.Object.Name); !strings.Contains(names, name+"\n") || cause.Object.APIVersion == "" {
			c.t.Errorf("explain: the names lack %s:\n%s", name, names)
		}
	}
}
