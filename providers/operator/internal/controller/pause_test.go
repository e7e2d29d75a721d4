package controller

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"sigs.k8s.io/cluster-api/packages/components"
)

func TestPauseAndResume(t *testing.T) {
	live := func(name string, replicas int32, before string) appsv1.Deployment {
		d := appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{Replicas: ptr.To(replicas)}}
		if before != "" {
			d.Annotations = map[string]string{"operator.cluster.x-k8s.io/paused-replicas": before}
		}
		return d
	}
	type deployment struct {
		replicas any
		before   string
	}
	for _, tc := range []struct {
		reason         string
		spec           map[string]any
		live           []appsv1.Deployment
		paused, resume deployment
	}{
		{"a number in the components", map[string]any{"replicas": int64(3)}, nil, deployment{int64(0), "3"}, deployment{int64(3), ""}},
		{"none, before the installation", map[string]any{}, nil, deployment{int64(0), "1"}, deployment{nil, ""}},
		{"none, and an autoscaler has chosen one", map[string]any{}, []appsv1.Deployment{live("d", 4, "")}, deployment{int64(0), "4"}, deployment{nil, ""}},
		{"none, and it is paused already", map[string]any{}, []appsv1.Deployment{live("other", 2, ""), live("d", 0, "4")}, deployment{int64(0), "4"}, deployment{int64(4), ""}},
		{"none, and the number before was changed", map[string]any{}, []appsv1.Deployment{live("d", 0, "x")}, deployment{int64(0), "1"}, deployment{int64(1), ""}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got := func(change func(*components.Components, []appsv1.Deployment)) deployment {
				o := unstructured.Unstructured{Object: map[string]any{"kind": "Deployment", "metadata": map[string]any{"name": "d"}, "spec": maps.Clone(tc.spec)}}
				c := &components.Components{Objects: []unstructured.Unstructured{{Object: map[string]any{"kind": "Service", "spec": map[string]any{}}}, o}}
				change(c, tc.live)
				spec, _ := o.Object["spec"].(map[string]any)
				return deployment{spec["replicas"], o.GetAnnotations()["operator.cluster.x-k8s.io/paused-replicas"]}
			}
			if diff := cmp.Diff([]deployment{tc.paused, tc.resume}, []deployment{got(pause), got(resume)}, cmp.AllowUnexported(deployment{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
