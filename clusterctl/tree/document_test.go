package tree

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

func TestDocument(t *testing.T) {
	objects := with(base(), newObject(coreVersion, "MachineDeployment", "c1-md").condition("Ready", "False", "Warning", "Late", "one\nis missing", time.Minute).
		set(int64(2), "spec", "replicas").set(int64(1), "status", "readyReplicas").set("v1.31.0", "spec", "template", "spec", "version"))
	o := Options{Grouping: true, ShowConditions: []string{"KubeadmControlPlane"}}
	root := Build(testCluster, objects, o)
	var workers Document
	for _, child := range NewDocument(root).Children {
		if child.Name == "Workers" {
			workers = child
		}
	}
	since := metav1.NewTime(testTime.Add(-time.Minute))
	workers.Children = workers.Children[:1]
	workers.Children[0].Children = nil
	want := Document{Name: "Workers", Children: []Document{{
		APIVersion: coreVersion, Kind: "MachineDeployment", Namespace: "ns", Name: "c1-md", Version: "v1.31.0", Replicas: &DocumentReplicas{Ready: 1, Desired: 2},
		Ready: &DocumentCondition{Type: "Ready", Status: "False", Severity: "Warning", Reason: "Late", Message: "one\nis missing", Since: &since},
	}}}
	if diff := cmp.Diff(want, workers); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	raw, err := yaml.Marshal(NewDocument(root))
	if err != nil {
		t.Fatal(err)
	}
	var again Document
	if err := yaml.UnmarshalStrict(raw, &again); err != nil {
		t.Errorf("the output cannot be read: %v", err)
	}
}

func TestWide(t *testing.T) {
	n := &Node{Kind: "Machine", Name: "m", Version: "v1.31.0", NodeName: "node-m", Created: testTime.Add(-time.Hour), Ready: &Condition{Status: "True"},
		Conditions: []Condition{{Type: "NodeHealthy", Status: "True"}}}
	want := []string{
		"NAME                       REPLICAS  VERSION  NODE    AGE  READY  SEVERITY  REASON  SINCE  MESSAGE",
		"Machine/m                            v1.31.0  node-m  60m  True",
		"            └─NodeHealthy                                  True",
	}
	if diff := cmp.Diff(want, Lines(n, Style{Now: testTime, Wide: true})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
