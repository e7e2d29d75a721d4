package machineset

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/contract"
	"sigs.k8s.io/cluster-api/provider/external"
	"sigs.k8s.io/cluster-api/provider/step"
)

// plane is a control plane object with this version in spec and status.
func plane(spec, status string, ready bool) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"spec":   map[string]any{},
		"status": map[string]any{"ready": ready, "initialized": ready},
	}}
	u.SetAPIVersion("controlplane.cluster.x-k8s.io/v1beta1")
	u.SetKind("KubeadmControlPlane")
	u.SetNamespace("ns")
	u.SetName("cp")
	if spec != "" {
		u.Object["spec"] = map[string]any{"version": spec}
	}
	if status != "" {
		u.Object["status"].(map[string]any)["version"] = status
	}
	return u
}

func TestPreflight(t *testing.T) {
	stable := func(v string) *unstructured.Unstructured { return plane(v, v, true) }
	cases := map[string]struct {
		reason    string
		off       bool
		plane     *unstructured.Unstructured
		version   string
		bootstrap string // kind of the bootstrap template
		skip      string
		want      string
	}{
		"Fits":     {reason: "all is well", plane: stable("v1.30.1"), version: "v1.30.0", bootstrap: "KubeadmConfigTemplate"},
		"Off":      {reason: "nothing is checked without the gate", off: true, plane: plane("v1.30.1", "", false), version: "v1.31.0"},
		"NoPlane":  {reason: "nor without a control plane that is there", version: "v1.31.0", want: "the control plane object does not exist yet"},
		"Unstated": {reason: "nor with one that has no version", plane: plane("", "", false), version: "v1.31.0"},
		"Provisioning": {reason: "Machines wait for the first control plane", plane: plane("v1.30.1", "", false), version: "v1.30.1",
			want: "ControlPlaneIsStable: the control plane is being provisioned"},
		"Upgrading": {reason: "and for its upgrades", plane: plane("v1.30.1", "v1.30.0", true), version: "v1.30.1",
			want: "ControlPlaneIsStable: the control plane is being upgraded"},
		"Skipped": {reason: "unless told not to", plane: plane("v1.30.1", "v1.30.0", true), version: "v1.30.1", skip: "KubeadmVersionSkew, ControlPlaneIsStable"},
		"All":     {reason: "or not to do anything", plane: plane("v1.30.1", "v1.30.0", true), version: "v1.35.0", skip: "All"},
		"Newer": {reason: "kubelets are not newer than the API server", plane: stable("v1.30.9"), version: "v1.31.0",
			want: "KubernetesVersionSkew: version v1.31.0 does not go with the control plane's v1.30.9: it must not be newer, nor more than 3 minors older"},
		"NewerPatch": {reason: "patches do not matter", plane: stable("v1.30.0"), version: "v1.30.9"},
		"ThreeOlder": {reason: "three minors are fine", plane: stable("v1.30.0"), version: "v1.27.0"},
		"FourOlder": {reason: "four are not", plane: stable("v1.30.0"), version: "v1.26.0",
			want: "KubernetesVersionSkew: version v1.26.0 does not go with the control plane's v1.30.0: it must not be newer, nor more than 3 minors older"},
		"ThreeOlderThen": {reason: "before v1.28 two were the limit", plane: stable("v1.27.0"), version: "v1.24.0",
			want: "KubernetesVersionSkew: version v1.24.0 does not go with the control plane's v1.27.0: it must not be newer, nor more than 2 minors older"},
		"Kubeadm": {reason: "kubeadm joins its own minor only", plane: stable("v1.30.0"), version: "v1.29.0", bootstrap: "KubeadmConfigTemplate",
			want: "KubeadmVersionSkew: kubeadm of version v1.29.0 cannot join a control plane of version v1.30.0"},
		"OtherBootstrap": {reason: "which other bootstrap providers may not care about", plane: stable("v1.30.0"), version: "v1.29.0", bootstrap: "OtherTemplate"},
		"NoVersion":      {reason: "without a version skew cannot be told", plane: stable("v1.30.0"), bootstrap: "KubeadmConfigTemplate"},
		"Two": {reason: "all that fails is told", plane: plane("v1.30.1", "v1.30.0", true), version: "v1.31.0",
			want: "ControlPlaneIsStable: the control plane is being upgraded; KubernetesVersionSkew: version v1.31.0 does not go with the control plane's v1.30.1: it must not be newer, nor more than 3 minors older"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := &Controller{Outside: step.Outside{Client: fakeClient(t, tc.plane)}, preflight: !tc.off}
			c.external = external.Reader{Client: c.Client, Versions: contract.APIVersions{Reader: c.Client}}
			set := &clusterv1.MachineSet{}
			if tc.skip != "" {
				set.Annotations = map[string]string{clusterv1.MachineSetSkipPreflightChecksAnnotation: tc.skip}
			}
			if tc.version != "" {
				set.Spec.Template.Spec.Version = &tc.version
			}
			if tc.bootstrap != "" {
				set.Spec.Template.Spec.Bootstrap.ConfigRef = &corev1.ObjectReference{APIVersion: "bootstrap.cluster.x-k8s.io/v1beta1", Kind: tc.bootstrap}
			}
			cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
			cluster.Spec.ControlPlaneRef = &corev1.ObjectReference{APIVersion: "controlplane.cluster.x-k8s.io/v1beta1", Kind: "KubeadmControlPlane", Name: "cp"}
			got, err := c.preflightFailure(t.Context(), &scope{set: set, cluster: cluster})
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// fakeClient has an object, which may be nil, and the CustomResourceDefinition of control planes.
func fakeClient(t *testing.T, obj *unstructured.Unstructured) client.Client {
	t.Helper()
	s := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	if err := clusterv1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
		Name: "kubeadmcontrolplanes.controlplane.cluster.x-k8s.io", Labels: map[string]string{"cluster.x-k8s.io/v1beta1": "v1beta1"},
	}}
	all := []client.Object{crd}
	if obj != nil {
		all = append(all, obj)
	}
	return fake.NewClientBuilder().WithScheme(s).WithObjects(all...).Build()
}
