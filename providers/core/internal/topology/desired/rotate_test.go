package desired

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/names"
	"sigs.k8s.io/cluster-api/sdk/contract"
)

// rotate completes all rotations; fits reports whether a template can be applied under its name.
func rotate(objects *Objects, fits func(*unstructured.Unstructured) bool) error {
	for _, rotation := range objects.Rotations(aCluster("c")) {
		for !fits(rotation.Template) {
			if err := rotation.Rename(); err != nil {
				return err
			}
		}
	}
	return nil
}

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
		"New":      {reason: "a template that does not exist keeps its name", want: "current"},
		"Same":     {reason: "the same content keeps the name", live: map[string]string{"current": "new"}, want: "current"},
		"Changed":  {reason: "new content gets a new name", live: map[string]string{"current": "old"}, want: rotated("new", 0)},
		"Rollback": {reason: "a template with earlier content still exists and is reused", live: map[string]string{"current": "old", rotated("new", 0): "new"}, want: rotated("new", 0)},
		"Edited":   {reason: "the template with the derived name was edited, so the next name is used", live: map[string]string{"current": "old", rotated("new", 0): "edited"}, want: rotated("new", 1)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			md := &Workers{
				TopologyName: "md", WorkersObject: WorkersObject{Deployment: &clusterv1.MachineDeployment{}},
				Bootstrap: aTemplate("T", "current", "new"), Infrastructure: aTemplate("I", "infra", "new"),
			}
			md.Deployment.Name = "c-md-x"
			fits := func(u *unstructured.Unstructured) bool {
				content, ok := tc.live[u.GetName()]
				return !ok || u.GetKind() != "T" || reflect.DeepEqual(u.Object["spec"], aTemplate("T", "", content).Object["spec"])
			}
			md.setRefs()
			objects := &Objects{Workers: []*Workers{md}}
			if err := rotate(objects, fits); err != nil {
				t.Fatal(err)
			}
			if got := md.Deployment.Spec.Template.Spec.Bootstrap.ConfigRef.Name; got != tc.want || md.Bootstrap.GetName() != tc.want {
				t.Errorf("%s: reference %q, template %q, want %q", tc.reason, got, md.Bootstrap.GetName(), tc.want)
			}
			if got := md.Deployment.Spec.Template.Spec.InfrastructureRef.Name; got != "infra" {
				t.Errorf("%s: the other template was renamed to %q", tc.reason, got)
			}
		})
	}
}

// Patches can write names of templates into templates by builtin variables. Renaming such a template changes its content, which
// must not cause another rotation.
func TestRotateTemplatesThatContainNames(t *testing.T) {
	const bootstrap0, infrastructure0 = "c-md-b1111", "c-md-i1111"
	type content func(bootstrap, infrastructure string) string
	plain := func(text string) content { return func(string, string) string { return text } }
	own := func(text string) content { return func(b, _ string) string { return text + " " + b } }
	other := func(text string) content { return func(_, i string) string { return text + " for-" + i + "-" } }
	first := func(text string) content { return func(b, _ string) string { return text + " " + b } }
	cases := map[string]struct {
		reason             string
		before, after      content // of the bootstrap template
		infraBefore, infra content
		rotates            []bool // bootstrap, infrastructure
		err                string
	}{
		"Own":                {reason: "it contains its own name", before: own("old"), after: own("new"), infraBefore: plain("i"), infra: plain("i"), rotates: []bool{true, false}},
		"OwnSame":            {reason: "its own name is not a change", before: own("same"), after: own("same"), infraBefore: plain("i"), infra: plain("i"), rotates: []bool{false, false}},
		"Follows":            {reason: "a template that contains the other's name is rotated with it, in one reconcile", before: other("b"), after: other("b"), infraBefore: plain("old"), infra: plain("new"), rotates: []bool{true, true}},
		"Precedes":           {reason: "in either direction", before: plain("old"), after: plain("new"), infraBefore: first("i"), infra: first("i"), rotates: []bool{true, true}},
		"Independent":        {reason: "the other template is kept", before: other("old"), after: other("new"), infraBefore: plain("i"), infra: plain("i"), rotates: []bool{true, false}},
		"Each other":         {reason: "each rotation would cause the next", before: other("old"), after: other("new"), infraBefore: first("i"), infra: first("i"), err: "contain each other's names"},
		"Each other, steady": {reason: "nothing is rotated", before: other("b"), after: other("b"), infraBefore: first("i"), infra: first("i"), rotates: []bool{false, false}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			live := map[string]any{
				"T/" + bootstrap0:      aTemplate("T", bootstrap0, tc.before(bootstrap0, infrastructure0)).Object["spec"],
				"I/" + infrastructure0: aTemplate("I", infrastructure0, tc.infraBefore(bootstrap0, infrastructure0)).Object["spec"],
			}
			fits := func(u *unstructured.Unstructured) bool {
				spec, ok := live[u.GetKind()+"/"+u.GetName()]
				return !ok || reflect.DeepEqual(u.Object["spec"], spec)
			}
			bootstrap, infrastructure := bootstrap0, infrastructure0
			for reconcile := range 3 {
				md := &Workers{
					TopologyName: "md", WorkersObject: WorkersObject{Deployment: &clusterv1.MachineDeployment{}},
					Bootstrap:      aTemplate("T", bootstrap, tc.after(bootstrap, infrastructure)),
					Infrastructure: aTemplate("I", infrastructure, tc.infra(bootstrap, infrastructure)),
				}
				md.Deployment.Name = "c-md-x"
				err := rotate(&Objects{Workers: []*Workers{md}}, fits)
				if tc.err != "" {
					if err == nil || !strings.Contains(err.Error(), tc.err) {
						t.Errorf("%s: error %v, want one that contains %q", tc.reason, err, tc.err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				rotated := []bool{md.Bootstrap.GetName() != bootstrap, md.Infrastructure.GetName() != infrastructure}
				if want := []bool{reconcile == 0 && tc.rotates[0], reconcile == 0 && tc.rotates[1]}; !slices.Equal(rotated, want) {
					t.Errorf("%s: reconcile %d rotates %v, want %v", tc.reason, reconcile, rotated, want)
				}
				bootstrap, infrastructure = md.Bootstrap.GetName(), md.Infrastructure.GetName()
				live["T/"+bootstrap], live["I/"+infrastructure] = md.Bootstrap.Object["spec"], md.Infrastructure.Object["spec"]
			}
		})
	}
}

// The name of a template that was not derived, but chosen by a user, is not replaced in the content: it may be an ordinary word.
func TestRotateKeepsWords(t *testing.T) {
	o := &Objects{ControlPlaneMachines: aTemplate("M", "worker", "role=worker"), ControlPlane: aTemplate("CP", "cp", "no worker")}
	fits := func(u *unstructured.Unstructured) bool {
		return u.GetName() != "worker"
	}
	if err := rotate(o, fits); err != nil {
		t.Fatal(err)
	}
	want := aTemplate("M", o.ControlPlaneMachines.GetName(), "role=worker")
	if diff := cmp.Diff(want.Object, o.ControlPlaneMachines.Object); diff != "" || want.GetName() == "worker" {
		t.Errorf("template (-want +got):\n%s", diff)
	}
}

// The new name replaces the previous one in the content of the machine template and of the control plane.
func TestRotateControlPlaneMachinesThatContainTheirName(t *testing.T) {
	name, live := "c-m1111", map[string]any{"c-m1111": aTemplate("M", "c-m1111", "old c-m1111").Object["spec"]}
	fits := func(u *unstructured.Unstructured) bool {
		spec, ok := live[u.GetName()]
		return !ok || reflect.DeepEqual(u.Object["spec"], spec)
	}
	for reconcile := range 3 {
		o := &Objects{ControlPlaneMachines: aTemplate("M", name, "new "+name), ControlPlane: aTemplate("CP", "cp", "uses "+name)}
		if err := o.SetMachines(RefTo(o.ControlPlaneMachines)); err != nil {
			t.Fatal(err)
		}
		if err := rotate(o, fits); err != nil {
			t.Fatal(err)
		}
		got := o.ControlPlaneMachines.GetName()
		if rotated := got != name; rotated != (reconcile == 0) {
			t.Errorf("reconcile %d: template %s was renamed to %s", reconcile, name, got)
		}
		name, live[got] = got, o.ControlPlaneMachines.Object["spec"]
		want := aTemplate("CP", "cp", "uses "+name)
		if err := contract.ControlPlaneOf(contract.Object{Unstructured: want}).SetInfrastructureRef(RefTo(o.ControlPlaneMachines)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.Object, o.ControlPlane.Object); diff != "" {
			t.Errorf("reconcile %d, control plane (-want +got):\n%s", reconcile, diff)
		}
	}
}
