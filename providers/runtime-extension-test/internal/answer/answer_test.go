package answer

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

func TestParse(t *testing.T) {
	tests := []struct {
		reason, hook, text string
		want               Answer
		wantErr            string
	}{
		{reason: "A missing key is a success.", hook: "BeforeClusterCreate"},
		{
			reason: "Fields are those of responses.", hook: "BeforeClusterUpgrade",
			text: "{message: not on fridays, retryAfterSeconds: 5, delay: 2s}",
			want: Answer{Message: "not on fridays", RetryAfterSeconds: 5, Delay: metav1.Duration{Duration: 2 * time.Second}},
		},
		{
			reason: "Patches are those of classes.", hook: "GeneratePatches",
			text: "patches: [{kind: K, jsonPatches: [{op: add, path: /spec/x, value: 1}]}]",
			want: Answer{Patches: []Patch{{Kind: "K", JSONPatches: []clusterv1beta1.JSONPatch{{Op: "add", Path: "/spec/x", Value: &apiextensionsv1.JSON{Raw: []byte("1")}}}}}},
		},
		{reason: "Misspelled fields are not ignored.", hook: "BeforeClusterCreate", text: "retryAfter: 5", wantErr: `key BeforeClusterCreate: error unmarshaling JSON: while decoding JSON: json: unknown field "retryAfter"`},
		{reason: "There are two statuses.", hook: "BeforeClusterCreate", text: "status: Blocked", wantErr: `key BeforeClusterCreate: status is "Blocked", but must be Success or Failure`},
		{reason: "Time does not run backwards.", hook: "BeforeClusterCreate", text: "retryAfterSeconds: -1", wantErr: "key BeforeClusterCreate: retryAfterSeconds is -1, but must not be negative"},
		{reason: "an hour is too long", hook: "BeforeClusterCreate", text: "delay: 1h", wantErr: "key BeforeClusterCreate: delay is 1h0m0s, but must be between 0s and 1m0s"},
		{reason: "Only one hook patches.", hook: "ValidateTopology", text: "patches: [{kind: K}]", wantErr: "key ValidateTopology: patches are for GeneratePatches only"},
		{reason: "Only one hook has variables.", hook: "GeneratePatches", text: "variables: [{name: v}]", wantErr: "key GeneratePatches: variables are for DiscoverVariables only"},
		{reason: "A patch is for a kind.", hook: "GeneratePatches", text: "patches: [{jsonPatches: []}]", wantErr: "key GeneratePatches: patches[0]: kind is required, such as InMemoryMachineTemplate"},
		{
			reason: "Versions are those of upgrades.", hook: "GenerateUpgradePlan", text: "{controlPlaneUpgrades: [v1.35.4], workersUpgrades: [v1.36.3]}",
			want: Answer{ControlPlaneUpgrades: []string{"v1.35.4"}, WorkersUpgrades: []string{"v1.36.3"}},
		},
		{reason: "Only one hook has versions.", hook: "BeforeWorkersUpgrade", text: "workersUpgrades: [v1.36.3]", wantErr: "key BeforeWorkersUpgrade: controlPlaneUpgrades and workersUpgrades are for GenerateUpgradePlan only"},
		{reason: "A version is a version.", hook: "GenerateUpgradePlan", text: "controlPlaneUpgrades: [newest]", wantErr: `key GenerateUpgradePlan: controlPlaneUpgrades[0] is "newest", but must be a version, such as v1.36.3`},
		{reason: "Flags have names.", hook: "UpdateMachine", text: "kubeletFlags: [max-pods, v]", want: Answer{KubeletFlags: []string{"max-pods", "v"}}},
		{reason: "Names have no dashes before them.", hook: "UpdateMachine", text: "kubeletFlags: [--v]", wantErr: `key UpdateMachine: kubeletFlags[0] is "--v", but must be the name of a flag without dashes before it, such as max-pods`},
		{reason: "Other hooks change no flags.", hook: "BeforeWorkersUpgrade", text: "kubeletFlags: [v]", wantErr: "key BeforeWorkersUpgrade: kubeletFlags are for CanUpdateMachine, CanUpdateMachineSet and UpdateMachine only"},
		{
			reason: "Templates are not rendered.", hook: "GeneratePatches",
			text:    "patches: [{kind: K, jsonPatches: [{op: add, path: /spec/x, valueFrom: {template: t}}]}]",
			wantErr: "key GeneratePatches: patches[0]: jsonPatches[0]: valueFrom must have a variable: templates are for inline patches",
		},
	}
	for _, tc := range tests {
		got, err := Parse(tc.hook, tc.text)
		text := ""
		if err != nil {
			text = strings.TrimSpace(err.Error())
		}
		if text != tc.wantErr {
			t.Errorf("%s\nerror %q, want %q", tc.reason, text, tc.wantErr)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s\n%s", tc.reason, diff)
		}
	}
}
