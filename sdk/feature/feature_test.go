package feature_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"sigs.k8s.io/cluster-api/sdk/feature"
)

// enabled is the value of every gate.
func enabled(g *feature.Gates) map[feature.Feature]bool {
	all := map[feature.Feature]bool{}
	for _, f := range []feature.Feature{
		feature.MachinePool, feature.ClusterResourceSet, feature.ClusterTopology,
		feature.RuntimeSDK, feature.KubeadmBootstrapFormatIgnition, feature.MachineSetPreflightChecks,
		feature.MachineTaintPropagation, feature.InPlaceUpdates, feature.ClusterTopologyWorkerVersionPinning,
	} {
		all[f] = g.Enabled(f)
	}
	return all
}

// defaults returns the documented defaults, with the changes of a test.
func defaults(changes map[feature.Feature]bool) map[feature.Feature]bool {
	all := map[feature.Feature]bool{
		"MachinePool":                         true,
		"ClusterResourceSet":                  true,
		"ClusterTopology":                     false,
		"RuntimeSDK":                          false,
		"KubeadmBootstrapFormatIgnition":      false,
		"MachineSetPreflightChecks":           false,
		"MachineTaintPropagation":             false,
		"InPlaceUpdates":                      false,
		"ClusterTopologyWorkerVersionPinning": false,
	}
	maps.Copy(all, changes)
	return all
}

func TestFlag(t *testing.T) {
	tests := map[string]struct {
		reason  string
		args    []string
		want    map[feature.Feature]bool
		wantErr string
	}{
		"none": {
			reason: "without the flag every gate has its documented default",
			want:   defaults(nil),
		},
		"some": {
			reason: "gates are switched one by one, the rest keep their default",
			args:   []string{"--feature-gates=ClusterTopology=true,MachinePool=false"},
			want:   defaults(map[feature.Feature]bool{"ClusterTopology": true, "MachinePool": false}),
		},
		"empty value": {
			reason: "a manifest's variable may be empty",
			args:   []string{"--feature-gates="},
			want:   defaults(nil),
		},
		"a gate of another component": {
			reason: "the same list can be given to every component",
			args:   []string{"--feature-gates=KubeadmBootstrapFormatIgnition=true"},
			want:   defaults(map[feature.Feature]bool{"KubeadmBootstrapFormatIgnition": true}),
		},
		"all of a stage": {
			reason: "AllAlpha covers the alpha gates that the list does not name",
			args:   []string{"--feature-gates=AllAlpha=true,RuntimeSDK=false"},
			want: defaults(map[feature.Feature]bool{
				"ClusterTopology": true, "KubeadmBootstrapFormatIgnition": true, "MachineSetPreflightChecks": true,
				"MachineTaintPropagation": true, "InPlaceUpdates": true, "ClusterTopologyWorkerVersionPinning": true,
			}),
		},
		"gates of v1.14": {
			reason: "the list of a Deployment of v1.14 is accepted",
			args: []string{"--feature-gates=MachineWaitForVolumeDetachConsiderVolumeAttachments=true,PriorityQueue=false," +
				"ReconcilerRateLimiting=false,InPlaceUpdates=false,MachineTaintPropagation=false"},
			want: defaults(nil),
		},
		"unknown": {
			reason:  "a misspelled gate is an error that names the flag and the gate",
			args:    []string{"--feature-gates=ClusterTopologie=true"},
			wantErr: `"--feature-gates" flag: unrecognized feature gate: ClusterTopologie`,
		},
		"not a boolean": {
			reason:  "the value must be a boolean",
			args:    []string{"--feature-gates=RuntimeSDK=maybe"},
			wantErr: "invalid value of RuntimeSDK=maybe",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			gates := feature.New(feature.MachinePool, feature.ClusterTopology)
			fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
			gates.AddFlag(fs)
			err := fs.Parse(tt.args)
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Fatalf("%s: got error %v, want one with %q", tt.reason, err, tt.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tt.reason, err)
			}
			if diff := cmp.Diff(tt.want, enabled(gates)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

func TestGatesAreIndependent(t *testing.T) {
	one, other := feature.New(), feature.New()
	if err := one.Set("RuntimeSDK=true"); err != nil {
		t.Fatal(err)
	}
	if other.Enabled(feature.RuntimeSDK) {
		t.Error("switching a gate of one component switched another component's")
	}
}

func TestNoGates(t *testing.T) {
	var none *feature.Gates
	if diff := cmp.Diff(defaults(nil), enabled(none)); diff != "" {
		t.Errorf("nil gates must have the defaults (-want +got):\n%s", diff)
	}
	if feature.New().Enabled("NoSuchFeature") {
		t.Error("an unknown gate must be off")
	}
}

func TestHelp(t *testing.T) {
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	feature.New(feature.RuntimeSDK, feature.MachinePool).AddFlag(fs)
	_, options, _ := strings.Cut(fs.Lookup("feature-gates").Usage, "Options are:\n")
	want := strings.Join([]string{
		"AllAlpha=true|false (ALPHA - default=false)",
		"AllBeta=true|false (BETA - default=false)",
		"MachinePool=true|false (BETA - default=true)",
		"RuntimeSDK=true|false (ALPHA - default=false)",
	}, "\n")
	if diff := cmp.Diff(want, options); diff != "" {
		t.Errorf("help lists the gates the component acts upon, sorted (-want +got):\n%s", diff)
	}
}
