package machine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/condition"
)

func TestBootstrap(t *testing.T) {
	waiting := func(what string) clusterv1.Conditions {
		return clusterv1.Conditions{condition.False(clusterv1.BootstrapReadyCondition, clusterv1.ConditionSeverityInfo,
			clusterv1.WaitingForDataSecretFallbackReason, "Waiting for GenericConfig m-1 %s", what)}
	}
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
			reason:  "data given by the user, without a config, leaves nothing to do",
			machine: machine(provided, func(m *clusterv1.Machine) { m.Spec.Bootstrap.ConfigRef = nil }), secret: ptr.To("mine"),
		},
		"NotThere": {
			reason: "the config may come later", machine: machine(), waits: true,
			want: clusterv1.MachineStatus{Conditions: waiting("to exist")},
		},
		"NotReady": {
			reason: "the provider has not said anything", machine: machine(), config: fields{}, waits: true,
			want: clusterv1.MachineStatus{Conditions: waiting("to be ready")},
		},
		"Ready": {
			reason: "the name of the Secret is taken over", machine: machine(), config: fields{"status": fields{"ready": true, "dataSecretName": "s"}},
			want:   clusterv1.MachineStatus{BootstrapReady: true, Conditions: clusterv1.Conditions{condition.True(clusterv1.BootstrapReadyCondition)}},
			secret: ptr.To("s"),
		},
		"ReadyWithoutSecret": {
			reason: "a provider that breaks its contract is told", machine: machine(), config: fields{"status": fields{"ready": true}},
			want:     clusterv1.MachineStatus{BootstrapReady: true, Conditions: clusterv1.Conditions{condition.True(clusterv1.BootstrapReadyCondition)}},
			wantsErr: true,
		},
		"Once": {
			reason: "another Secret later changes nothing", machine: machine(provided), config: fields{"status": fields{"ready": true, "dataSecretName": "s"}},
			want:   clusterv1.MachineStatus{BootstrapReady: true, Conditions: clusterv1.Conditions{condition.True(clusterv1.BootstrapReadyCondition)}},
			secret: ptr.To("mine"),
		},
		"Gone": {
			reason: "once there is data the config is not needed", machine: machine(provided),
			want:   clusterv1.MachineStatus{BootstrapReady: true, Conditions: clusterv1.Conditions{condition.True(clusterv1.BootstrapReadyCondition)}},
			secret: ptr.To("mine"),
		},
		"Failed": {
			reason: "a terminal failure becomes the Machine's", machine: machine(), waits: true,
			config: fields{"status": fields{"failureReason": "CreateError", "failureMessage": "no luck"}},
			want: clusterv1.MachineStatus{
				FailureReason:  ptr.To(clusterv1.CreateMachineError),
				FailureMessage: ptr.To(`Failure detected from referenced resource bootstrap.cluster.x-k8s.io/v1, Kind=GenericConfig with name "m-1": no luck`),
				Conditions:     waiting("to be ready"),
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var there []client.Object
			if tc.config != nil {
				there = append(there, config(tc.config))
			}
			w := newWorld(t, there...)
			r, err := w.step(t, "bootstrap", &scope{machine: tc.machine, cluster: cluster()})
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
				t.Errorf("%s: an object that is ours already is not written: %q", tc.reason, w.Writes)
			}
		})
	}
}

func TestBootstrapTakesOver(t *testing.T) {
	made := provided("GenericConfig", bootstrapping, nil, nil)
	made.SetLabels(nil)
	w := newWorld(t, made)
	if _, err := w.step(t, "bootstrap", &scope{machine: machine(), cluster: cluster()}); err != nil {
		t.Fatal(err)
	}
	if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(made), made); err != nil {
		t.Fatal(err)
	}
	want := config(nil)
	if diff := cmp.Diff(want.GetOwnerReferences(), made.GetOwnerReferences()); diff != "" {
		t.Errorf("a config that a user made gets the Machine as controller, -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(want.GetLabels(), made.GetLabels()); diff != "" {
		t.Errorf("and the Cluster's name, -want +got:\n%s", diff)
	}
}
