package explain

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"sigs.k8s.io/cluster-api/clusterctl/tree"
)

var (
	testCluster = types.NamespacedName{Namespace: "ns", Name: "c1"}
	testTime    = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
)

// Each case of the transcripts in testdata starts with a "case" line, which is the reason for the case. The lines until "explain"
// change the objects of base.yaml, and the lines after it are the causes, the root cause first:
//
//	<Kind>/<name> patch <YAML>                                                 (a JSON merge patch)
//	<Kind>/<name> condition <type> <status>[/<severity>] [<reason> <message>]  (for five minutes)
//	<Kind>/<name> new <apiVersion> <YAML>
//	<Kind>/<name> gone
//	<Kind>/<name> deleting [<finalizer> ...]                                   (for ten minutes)
//	<Kind>/<name> warning <reason> <message>                                   (a minute ago)
//	provider <name> <available>/<desired> <kind>.<group> ...                   (a Deployment, and its kinds)
//	provider <name> gone                                                       (its kinds stay)
//	provider all gone                                                          (no provider is installed)
//	pod <provider> <reason> <message>                                          (why its container waits)
//	unknown <kind>.<group>                                                     (not installed)
//
// The order of the lines matters: a patch replaces lists. A cause is written as "<state> <reason> <object> [for <time>]: <message>", the root cause with its chain, events and actions.
func TestTranscripts(t *testing.T) {
	eachTranscript(t, func(t *testing.T, in Input, want string) {
		if diff := cmp.Diff(want, described(Explain(in))); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

// eachTranscript runs a test for each case, with its objects and the causes.
func eachTranscript(t *testing.T, test func(t *testing.T, in Input, want string)) {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for block := range strings.SplitSeq(strings.TrimPrefix(string(content), "case "), "\ncase ") {
			reason, rest, _ := strings.Cut(block, "\n")
			t.Run(filepath.Base(path)+": "+reason, func(t *testing.T) {
				changes, want, found := strings.Cut("\n"+rest, "\nexplain\n")
				if !found {
					t.Fatalf("%s: case %q has no line explain", path, reason)
				}
				test(t, changed(t, strings.TrimSpace(changes)), strings.TrimSpace(want))
			})
		}
	}
}

// described writes a report as a transcript does.
func described(r Report) string {
	var lines []string
	if r.Healthy {
		lines = append(lines, "nothing: "+r.Summary)
	}
	for i, c := range r.Causes {
		since := ""
		if c.Since != nil {
			since = " for " + testTime.Sub(c.Since.Time).String()
		}
		lines = append(lines, fmt.Sprintf("%s %s %s%s: %s", c.State, c.Reason, c.Object, since, c.Message))
		if i > 0 {
			continue
		}
		for _, link := range c.Chain {
			lines = append(lines, strings.TrimSpace("> "+link.Object.String()+" "+link.State))
		}
		for _, e := range c.Events {
			lines = append(lines, fmt.Sprintf("! %s %s", e.Reason, e.Message))
		}
		for _, a := range c.Actions {
			lines = append(lines, "* "+a)
		}
	}
	for _, c := range r.Upcoming {
		lines = append(lines, fmt.Sprintf("%s %s %s: %s", c.State, c.Reason, c.Object, c.Message))
		for _, a := range c.Actions {
			lines = append(lines, "* "+a)
		}
	}
	return strings.Join(lines, "\n")
}

// changed returns the objects of base.yaml with changes.
func changed(t *testing.T, changes string) Input {
	t.Helper()
	raw, err := os.ReadFile("testdata/base.yaml")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, in: Input{
		Cluster: testCluster, Now: testTime, ClassRead: true, ProviderOf: map[schema.GroupKind]string{}, NoKind: map[schema.GroupKind]bool{},
	}}
	for document := range strings.SplitSeq(string(raw), "\n---\n") {
		u := &unstructured.Unstructured{}
		object, err := yaml.YAMLToJSON([]byte(document))
		if err == nil {
			err = u.UnmarshalJSON(object)
		}
		if err != nil {
			t.Fatal(err)
		}
		w.objects = append(w.objects, u)
	}
	for line := range strings.Lines(changes) {
		w.change(strings.TrimSpace(line))
	}
	w.in.Objects = tree.NewObjects(w.objects...)
	return w.in
}

type world struct {
	t       *testing.T
	in      Input
	objects []*unstructured.Unstructured
}

func (w *world) change(line string) {
	w.t.Helper()
	words := strings.Fields(line)
	if len(words) < 2 {
		w.t.Fatalf("invalid line %q", line)
	}
	rest := func(n int) string {
		parts := strings.SplitN(line, " ", n+1)
		if len(parts) <= n {
			return ""
		}
		return parts[n]
	}
	switch words[0] {
	case "provider":
		w.provider(words[1:])
		return
	case "event":
		w.in.PodEvents = append(w.in.PodEvents, corev1.Event{
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: words[1] + "-system", Name: words[1] + "-0"},
			Type:           corev1.EventTypeWarning, Reason: words[2], Message: rest(3), EventTime: metav1.MicroTime{Time: w.in.Now},
		})
		return
	case "pod":
		w.in.Pods = append(w.in.Pods, corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: words[1] + "-system", Name: words[1] + "-0", Labels: map[string]string{providerLabel: words[1]}},
			Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
				Name: "manager", Image: "example.com/manager:v1", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: words[2], Message: rest(3)}},
			}}},
		})
		return
	case "unknown":
		w.in.NoKind[schema.ParseGroupKind(words[1])] = true
		return
	}
	kind, name, _ := strings.Cut(words[0], "/")
	if words[1] == "new" {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetAPIVersion(words[2])
		u.SetKind(kind)
		u.SetNamespace("ns")
		u.SetName(name)
		u.SetUID(types.UID(words[0]))
		w.objects = append(w.objects, u)
		w.merge(u, rest(3))
		return
	}
	i := slices.IndexFunc(w.objects, func(u *unstructured.Unstructured) bool { return u.GetKind() == kind && u.GetName() == name })
	if i < 0 {
		w.t.Fatalf("there is no %s", words[0])
	}
	w.object(w.objects[i], i, words[1:], rest)
}

func (w *world) object(u *unstructured.Unstructured, i int, words []string, rest func(int) string) {
	w.t.Helper()
	switch words[0] {
	case "patch":
		w.merge(u, rest(2))
	case "gone":
		w.objects = slices.Delete(w.objects, i, i+1)
	case "deleting":
		since := metav1.NewTime(testTime.Add(-10 * time.Minute))
		u.SetDeletionTimestamp(&since)
		u.SetFinalizers(words[1:])
	case "warning":
		w.in.Events = append(w.in.Events, corev1.Event{
			Type: corev1.EventTypeWarning, InvolvedObject: corev1.ObjectReference{Kind: u.GetKind(), Namespace: "ns", Name: u.GetName()},
			Reason: words[1], Message: rest(3), LastTimestamp: metav1.NewTime(testTime.Add(-time.Minute)),
		})
	case "condition":
		status, severity, _ := strings.Cut(words[2], "/")
		c := map[string]any{"type": words[1], "status": status, "lastTransitionTime": testTime.Add(-5 * time.Minute).Format(time.RFC3339)}
		if severity != "" {
			c["severity"] = severity
		}
		if len(words) > 3 {
			c["reason"], c["message"] = words[3], rest(5)
		}
		list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
		list = slices.DeleteFunc(list, func(item any) bool { return item.(map[string]any)["type"] == words[1] })
		if err := unstructured.SetNestedSlice(u.Object, append(list, c), "status", "conditions"); err != nil {
			w.t.Fatal(err)
		}
	default:
		w.t.Fatalf("unknown change %q", words[0])
	}
}

func (w *world) merge(u *unstructured.Unstructured, patch string) {
	w.t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(patch))
	if err != nil {
		w.t.Fatalf("%s: %v", patch, err)
	}
	before, err := u.MarshalJSON()
	if err != nil {
		w.t.Fatal(err)
	}
	after, err := jsonpatch.MergePatch(before, raw)
	if err == nil {
		err = u.UnmarshalJSON(after)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) provider(words []string) {
	w.t.Helper()
	if words[0] == "all" {
		w.in.Providers, w.in.NoManagers = nil, true
		return
	}
	if words[1] == "gone" {
		w.in.Providers = slices.DeleteFunc(w.in.Providers, func(d appsv1.Deployment) bool { return d.Name == words[0] })
		return
	}
	d := appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: words[0] + "-system", Name: words[0], Labels: map[string]string{providerLabel: words[0]}}}
	var desired int32
	if _, err := fmt.Sscanf(words[1], "%d/%d", &d.Status.AvailableReplicas, &desired); err != nil {
		w.t.Fatal(err)
	}
	d.Spec.Replicas = &desired
	w.in.Providers = append(w.in.Providers, d)
	for _, kind := range words[2:] {
		w.in.ProviderOf[schema.ParseGroupKind(kind)] = words[0]
	}
}
