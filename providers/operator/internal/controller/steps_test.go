package controller

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/packages/components"
	"sigs.k8s.io/cluster-api/providers/operator/internal/declared"
	"sigs.k8s.io/cluster-api/providers/operator/internal/engine"
	"sigs.k8s.io/cluster-api/providers/operator/internal/source"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

func TestStepsDocumented(t *testing.T) {
	testenv.StepsDocumentedExcept(t, []string{"adopt", "preflight", "unused"}, (&Controller{kind: declared.Kinds()[0]}).declared().Names())
}

// provider returns a provider with an installed contract, "" for none.
func provider(name, contract string, paused bool) declared.Provider {
	p := &operatorv1.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: types.UID(name)}}
	p.Spec.Paused, p.Spec.Version = paused, "v2.0.0"
	if contract != "" {
		p.Status.Contract = ptr.To(contract)
	}
	return declared.Provider{Type: clusterctlv1.InfrastructureProviderType, Object: p}
}

func TestContracts(t *testing.T) {
	const older, newer = "v1beta1", "v1beta2"
	for _, tc := range []struct {
		reason   string
		p        declared.Provider
		others   []declared.Provider
		contract string
		want     string
	}{
		{"the first provider", provider("a", "", false), nil, newer, ""},
		{"the contract of the others", provider("a", "", false), []declared.Provider{provider("b", older, false)}, older, ""},
		{"another contract than the others", provider("a", "", false), []declared.Provider{provider("b", older, false)}, newer,
			"version v2.0.0 implements contract v1beta2, but InfrastructureProvider n/b implements v1beta1: pause all providers (spec.paused), change their versions, and resume them when all implement one contract"},
		{"an upgrade to another contract", provider("a", older, false), nil, newer,
			"version v2.0.0 implements contract v1beta2, the installed one v1beta1: pause all providers (spec.paused) first"},
		{"not all are paused", provider("a", older, true), []declared.Provider{provider("b", older, false)}, newer,
			"version v2.0.0 implements contract v1beta2, the installed one v1beta1: pause all providers (spec.paused) first"},
		{"all are paused", provider("a", older, true), []declared.Provider{provider("b", older, true)}, newer, ""},
		{"resumed too early", provider("a", newer, false), []declared.Provider{provider("b", older, true)}, newer,
			"version v2.0.0 implements contract v1beta2, but InfrastructureProvider n/b implements v1beta1: pause all providers (spec.paused), change their versions, and resume them when all implement one contract"},
		{"resumed when all have the contract", provider("a", newer, false), []declared.Provider{provider("b", newer, true)}, newer, ""},
		{"one that is not installed need not be paused", provider("a", older, true), []declared.Provider{provider("b", "", false)}, newer, ""},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if got := contracts(tc.p, append([]declared.Provider{tc.p}, tc.others...), tc.contract); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

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

func TestFailedDownloads(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	p := provider("a", "", false)
	var d downloads
	for i, want := range []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, 5 * time.Minute, 5 * time.Minute} {
		if got := d.failed(p, now); got != want || d.left(p, now.Add(time.Second)) != want-time.Second {
			t.Errorf("failure %d: a pause of %s, want %s, and %s are left after a second", i, got, want, d.left(p, now.Add(time.Second)))
		}
	}
	if left := d.left(provider("b", "", false), now); left > 0 {
		t.Errorf("another provider waits for %s", left)
	}
	p.SetGeneration(2)
	if left := d.left(p, now); left > 0 {
		t.Errorf("after a change of the spec, the next attempt waits for %s", left)
	}
	if pause := d.failed(p, now); pause != 10*time.Second {
		t.Errorf("after a change of the spec, the pause is %s", pause)
	}
	d.forget(p.GetUID())
	if left := d.left(p, now); left > 0 {
		t.Errorf("after a success, the next attempt waits for %s", left)
	}
}

func TestHash(t *testing.T) {
	base := &operatorv1.CoreProvider{Spec: operatorv1.ProviderSpec{Version: "v1.0.0"}}
	for _, tc := range []struct {
		reason string
		change func(*operatorv1.CoreProvider)
		same   bool
	}{
		{"nothing", func(*operatorv1.CoreProvider) {}, true},
		{"the location of releases", func(p *operatorv1.CoreProvider) { p.Spec.FetchConfig = &operatorv1.FetchConfiguration{URL: "x"} }, true},
		{"the version", func(p *operatorv1.CoreProvider) { p.Spec.Version = "v1.0.1" }, false},
		{"the Secret", func(p *operatorv1.CoreProvider) { p.Spec.SecretName = ptr.To("x") }, false},
		{"the pause", func(p *operatorv1.CoreProvider) { p.Spec.Paused = true }, false},
		{"an annotation of others", func(p *operatorv1.CoreProvider) { annotate(p, "a", "true") }, true},
		{"what the components may contain", func(p *operatorv1.CoreProvider) { annotate(p, operatorv1.AllowAllPermissionsAnnotation, "true") }, false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			changed := base.DeepCopy()
			tc.change(changed)
			if same := hashOf(base) == hashOf(changed); same != tc.same {
				t.Errorf("the hash is the same: %t, want %t", same, tc.same)
			}
		})
	}
}

func TestUnavailable(t *testing.T) {
	deployment := func(change func(*appsv1.Deployment)) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "d", Generation: 2}, Status: appsv1.DeploymentStatus{ObservedGeneration: 2,
			Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}}}}
		change(d)
		return d
	}
	for _, tc := range []struct {
		reason          string
		d               *appsv1.Deployment
		wants, messages string
	}{
		{"available", deployment(func(*appsv1.Deployment) {}), "", ""},
		{"no condition yet", deployment(func(d *appsv1.Deployment) { d.Status.Conditions = nil }),
			"NoDeploymentAvailableConditionReason", "Waiting for Deployment d to be available"},
		{"an outdated condition", deployment(func(d *appsv1.Deployment) { d.Generation = 3 }),
			"NoDeploymentAvailableConditionReason", "Waiting for Deployment d to be available: "},
		{"not available", deployment(func(d *appsv1.Deployment) {
			d.Status.Conditions[0] = appsv1.DeploymentCondition{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, Reason: "MinimumReplicasUnavailable", Message: "m"}
		}), "MinimumReplicasUnavailable", "Waiting for Deployment d to be available: m"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			reason, message := unavailable(tc.d)
			if diff := cmp.Diff([2]string{tc.wants, tc.messages}, [2]string{reason, message}); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestUpgradeIsAnnounced: also if the process that upgraded the provider was killed before it could.
func TestUpgradeIsAnnounced(t *testing.T) {
	for _, tc := range []struct {
		reason           string
		reported, before string
		want             bool
	}{
		{"an installation", "", "", false},
		{"an adoption", "", "v2.0.1", false},
		{"an upgrade of what clusterctl has installed", "", "v2.0.0", true},
		{"an upgrade", "v2.0.0", "v2.0.0", true},
		{"an upgrade by a process that was killed", "v2.0.0", "v2.0.1", true},
		{"a change", "v2.0.1", "v2.0.1", false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			p := provider("a", "", false)
			if tc.reported != "" {
				p.GetStatus().InstalledVersion = ptr.To(tc.reported)
			}
			s := &scope{Provider: p, found: &source.Release{Version: "v2.0.1"}}
			(&Controller{}).announce(t.Context(), s, engine.Outcome{Before: tc.before})
			if got := condition.IsTrue(s.Object, operatorv1.ProviderUpgradedCondition); got != tc.want {
				t.Errorf("ProviderUpgraded is True: %t, want %t", got, tc.want)
			}
		})
	}
}
