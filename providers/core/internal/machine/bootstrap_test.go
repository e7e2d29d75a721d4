package machine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/reference"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

func TestBootstrap(t *testing.T) {
	waiting := func(what string) clusterv1.Conditions {
		return clusterv1.Conditions{condition.False(clusterv1.BootstrapReadyV1Beta1Condition, clusterv1.ConditionSeverityInfo,
			clusterv1.WaitingForDataSecretFallbackV1Beta1Reason, "Waiting for GenericConfig m-1 %s", what)}
	}
	created := clusterv1.MachineInitializationStatus{BootstrapDataSecretCreated: ptr.To(true)}
	provided := func(m *clusterv1.Machine) { m.Spec.Bootstrap.DataSecretName = ptr.To("mine") }
	cases := map[string]struct {
		reason   string
		machine  *clusterv1.Machine
		config   fields
		want     clusterv1.MachineStatus
		secret   *string
		waits    bool
		wantsErr bool
	}{
		"OwnData": {
			reason:  "the user provides the data, there is no config",
			machine: machine(provided, func(m *clusterv1.Machine) { m.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{} }), secret: ptr.To("mine"),
		},
		"NotFound": {
			reason: "the config may be created later", machine: machine(), waits: true,
			want: clusterv1.MachineStatus{Deprecated: older(waiting("to exist"))},
		},
		"NotReady": {
			reason: "the provider has not set the status", machine: machine(), config: fields{}, waits: true,
			want: clusterv1.MachineStatus{Deprecated: older(waiting("to be ready"))},
		},
		"Ready": {
			reason: "the name of the Secret is copied", machine: machine(), config: fields{"status": fields{"ready": true, "dataSecretName": "s"}},
			want:   clusterv1.MachineStatus{Initialization: created, Deprecated: older(clusterv1.Conditions{condition.True(clusterv1.BootstrapReadyV1Beta1Condition)})},
			secret: ptr.To("s"),
		},
		"ReadyWithoutSecret": {
			reason: "a ready config without Secret is an error", machine: machine(), config: fields{"status": fields{"ready": true}},
			want: clusterv1.MachineStatus{Initialization: created, Deprecated: older(clusterv1.Conditions{
				condition.False(clusterv1.BootstrapReadyV1Beta1Condition, clusterv1.ConditionSeverityError, reference.ContractViolatedReason,
					"GenericConfig default/m-1 is ready but status.dataSecretName is empty: its provider must set it")})},
			wantsErr: true,
		},
		"Once": {
			reason: "the name of the Secret is copied only once", machine: machine(provided), config: fields{"status": fields{"ready": true, "dataSecretName": "s"}},
			want:   clusterv1.MachineStatus{Initialization: created, Deprecated: older(clusterv1.Conditions{condition.True(clusterv1.BootstrapReadyV1Beta1Condition)})},
			secret: ptr.To("mine"),
		},
		"Gone": {
			reason: "the config is no longer needed", machine: machine(provided),
			want:   clusterv1.MachineStatus{Initialization: created, Deprecated: older(clusterv1.Conditions{condition.True(clusterv1.BootstrapReadyV1Beta1Condition)})},
			secret: ptr.To("mine"),
		},
		"Failed": {
			reason: "a terminal failure is copied", machine: machine(), waits: true,
			config: fields{"status": fields{"failureReason": "CreateError", "failureMessage": "no luck"}},
			want: clusterv1.MachineStatus{Deprecated: failed("CreateError",
				`Failure detected from referenced resource bootstrap.cluster.x-k8s.io/v1, Kind=GenericConfig with name "m-1": no luck`,
				waiting("to be ready"))},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			if tc.config != nil {
				objects = append(objects, config(tc.config))
			}
			w := newWorld(t, objects...)
			r, err := w.step(t, "bootstrap", &scope{machine: tc.machine, cluster: build.Cluster()})
			if (err != nil) != tc.wantsErr || r.Ends() != tc.waits {
				t.Errorf("%s: waits for %q, err = %v", tc.reason, r.Waiting(), err)
			}
			if diff := cmp.Diff(tc.want, tc.machine.Status); diff != "" {
				t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.secret, tc.machine.Spec.Bootstrap.DataSecretName); diff != "" {
				t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
			}
			if len(w.Writes) != 0 {
				t.Errorf("%s: an object with controller and label is not written: %q", tc.reason, w.Writes)
			}
		})
	}
}

func TestBootstrapAdopts(t *testing.T) {
	existing := provided("GenericConfig", bootstrapping, nil, nil)
	existing.SetLabels(nil)
	w := newWorld(t, existing)
	if _, err := w.step(t, "bootstrap", &scope{machine: machine(), cluster: build.Cluster()}); err != nil {
		t.Fatal(err)
	}
	testenv.Must(t, w.Client.Get(t.Context(), client.ObjectKeyFromObject(existing), existing))
	want := config(nil)
	if diff := cmp.Diff(want.GetOwnerReferences(), existing.GetOwnerReferences()); diff != "" {
		t.Errorf("owner references of a config created by a user, -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(want.GetLabels(), existing.GetLabels()); diff != "" {
		t.Errorf("labels of a config created by a user, -want +got:\n%s", diff)
	}
}
