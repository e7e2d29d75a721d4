package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta2 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/test/journey"
)

// drains deletes a worker with the Pods of testdata/drain.yaml. Rules and a label decide which are evicted, and in which order; the volume of
// one that stays does not delay the deletion.
func drains(t *testing.T, c *journey.Subject) {
	t.Helper()
	victim := c.Snapshot().Workers()[0]
	node := victim.Status.NodeRef.Name
	manifest, err := os.ReadFile(filepath.Join("testdata", "drain.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "drain.yaml")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(manifest), "NODE", node)), 0o600); err != nil {
		t.Fatal(err)
	}
	kubectl(t, c, "apply", "--filename", file)
	kubectl(t, c, "wait", "pod/ruled", "pod/job", "pod/first", "pod/second", "--for", "condition=Ready", "--timeout", "60s")
	attached := func() bool {
		return strings.Contains(kubectl(t, c, "get", "volumeattachments", "--output", "jsonpath={.items[*].spec.source.persistentVolumeName}"), "kept")
	}
	c.Eventually("the volume is attached", func(*journey.Snapshot) error {
		if !attached() {
			return fmt.Errorf("no VolumeAttachment attaches PersistentVolume kept")
		}
		return nil
	})
	pods := workload(t, c).CoreV1().Pods("default")
	list, err := pods.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	events, err := pods.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	if err := c.Client.Delete(t.Context(), &victim); err != nil {
		t.Fatal(err)
	}
	c.Eventually("the drain waits for the job", deleting(t, c, victim.Name, "Pod default/job: waiting for completion",
		"After above Pods have been removed from the Node, the following Pods will be evicted: default/second"), func(*journey.Snapshot) error {
		if kubectl(t, c, "get", "pod", "first", "--ignore-not-found", "--output", "name") != "" {
			return fmt.Errorf("Pod first is not gone")
		}
		return nil
	})
	must(t, "exec", node, "touch", "/var/lib/e2e-work/done")
	want := []string{"first terminates", "first is gone", "job completes", "second terminates", "second is gone"}
	if diff := cmp.Diff(want, observed(t, events, len(want))); diff != "" {
		t.Errorf("what happened to the Pods, in order (-want +got):\n%s", diff)
	}
	if !attached() {
		t.Error("the volume of a Pod that stays was detached")
	}
	c.Eventually("the worker is replaced", journey.Ready, journey.Workers(2), c.WorkloadMatches, func(p *journey.Snapshot) error {
		for _, m := range p.Workers() {
			if m.Name == victim.Name {
				return fmt.Errorf("Machine %s still exists", m.Name)
			}
		}
		return nil
	})
}

// deleting is a Condition: the condition Deleting of a Machine has these texts in its message.
func deleting(t *testing.T, c *journey.Subject, name string, texts ...string) journey.Condition {
	return func(*journey.Snapshot) error {
		m := &clusterv1beta2.Machine{}
		if err := c.Client.Get(t.Context(), client.ObjectKey{Namespace: c.Namespace, Name: name}, m); err != nil {
			return err
		}
		i := slices.IndexFunc(m.Status.Conditions, func(c metav1.Condition) bool { return c.Type == clusterv1beta2.DeletingCondition })
		if i < 0 {
			return fmt.Errorf("Machine %s has no condition Deleting", name)
		}
		for _, text := range texts {
			if !strings.Contains(m.Status.Conditions[i].Message, text) {
				return fmt.Errorf("condition Deleting of Machine %s does not contain %q: %s", name, text, m.Status.Conditions[i].Message)
			}
		}
		return nil
	}
}

// observed returns the first n things that happen to Pods. A job that has completed is of no interest.
func observed(t *testing.T, events watch.Interface, n int) []string {
	t.Helper()
	var happened []string
	completed := map[string]bool{}
	for len(happened) < n {
		select {
		case <-t.Context().Done():
			t.Fatalf("the test ends, and only this has happened: %v", happened)
		case e, ok := <-events.ResultChan():
			pod, isPod := e.Object.(*corev1.Pod)
			if !ok || !isPod {
				t.Fatalf("the watch of Pods ended: %v; this has happened: %v", e, happened)
			}
			what := ""
			switch {
			case completed[pod.Name]:
			case e.Type == watch.Deleted:
				what = pod.Name + " is gone"
			case pod.DeletionTimestamp != nil:
				what = pod.Name + " terminates"
			case pod.Name == "job" && pod.Status.Phase == corev1.PodSucceeded:
				what, completed[pod.Name] = pod.Name+" completes", true
			}
			if what != "" && !slices.Contains(happened, what) {
				happened = append(happened, what)
			}
		}
	}
	return happened
}
