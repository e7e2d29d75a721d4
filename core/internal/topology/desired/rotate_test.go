package desired

import (
	"context"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/core/internal/topology/names"
)

func TestRotate(t *testing.T) {
	rotated := func(value string, attempt int) string {
		name, err := names.Rotated(aCluster("c"), "c-md", names.ForBootstrap+"/c-md-x", aTemplate("T", "", value), attempt)
		if err != nil {
			t.Fatal(err)
		}
		return name
	}
	cases := map[string]struct {
		reason string
		live   map[string]string // content by name
		want   string
	}{
		"New":          {reason: "a template that does not exist keeps the name it has", want: "current"},
		"Same":         {reason: "nothing changes", live: map[string]string{"current": "new"}, want: "current"},
		"Changed":      {reason: "other content, other name", live: map[string]string{"current": "old"}, want: rotated("new", 0)},
		"BackToBefore": {reason: "a template with the content is there still", live: map[string]string{"current": "old", rotated("new", 0): "new"}, want: rotated("new", 0)},
		"Edited":       {reason: "somebody has changed the template that has the name", live: map[string]string{"current": "old", rotated("new", 0): "edited"}, want: rotated("new", 1)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			md := &MachineDeployment{
				TopologyName: "md", Object: &clusterv1.MachineDeployment{},
				Bootstrap: aTemplate("T", "current", "new"), Infrastructure: aTemplate("I", "infra", "new"),
			}
			md.Object.Name = "c-md-x"
			fits := func(_ context.Context, u *unstructured.Unstructured) (bool, error) {
				content, ok := tc.live[u.GetName()]
				return !ok || u.GetKind() != "T" || reflect.DeepEqual(u.Object["spec"], aTemplate("T", "", content).Object["spec"]), nil
			}
			objects := &Objects{MachineDeployments: []*MachineDeployment{md}}
			if err := objects.Rotate(t.Context(), aCluster("c"), fits); err != nil {
				t.Fatal(err)
			}
			if got := md.Object.Spec.Template.Spec.Bootstrap.ConfigRef.Name; got != tc.want || md.Bootstrap.GetName() != tc.want {
				t.Errorf("%s: reference %q, template %q, want %q", tc.reason, got, md.Bootstrap.GetName(), tc.want)
			}
			if got := md.Object.Spec.Template.Spec.InfrastructureRef.Name; got != "infra" {
				t.Errorf("%s: the other template got the name %q", tc.reason, got)
			}
		})
	}
}
