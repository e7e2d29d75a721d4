package answer

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	runtimehooksv1 "sigs.k8s.io/cluster-api/exp/runtime/hooks/api/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/runtime-extension-test/internal/kubelet"
)

// maxDelay is longer than any caller waits.
const maxDelay = time.Minute

// Answer is what a hook answers. The zero value is a success.
type Answer struct {
	// Status is Success or Failure. Defaults to Success.
	Status runtimehooksv1.ResponseStatus `json:"status,omitempty"`
	// Message is the message of the response.
	Message string `json:"message,omitempty"`
	// RetryAfterSeconds, if not 0, blocks lifecycle hooks that can block, until the hook is called again.
	RetryAfterSeconds int32 `json:"retryAfterSeconds,omitempty"`
	// Delay is how long the hook waits before it answers, up to a minute. Defaults to 0s.
	Delay metav1.Duration `json:"delay"`
	// Patches are what GeneratePatches changes in templates.
	Patches []Patch `json:"patches,omitempty"`
	// Variables are what DiscoverVariables returns.
	Variables []clusterv1beta1.ClusterClassVariable `json:"variables,omitempty"`
	// ControlPlaneUpgrades are the versions that GenerateUpgradePlan chooses those of the control plane from. Those that the upgrade does not
	// go through are left out, and the one to upgrade to need not be among them.
	ControlPlaneUpgrades []string `json:"controlPlaneUpgrades,omitempty"`
	// WorkersUpgrades are the same for workers. Defaults to as few as possible.
	WorkersUpgrades []string `json:"workersUpgrades,omitempty"`
	// KubeletFlags are the names of flags of kubelets, such as max-pods, that CanUpdateMachine and CanUpdateMachineSet promise to change in
	// place, and UpdateMachine changes. Defaults to none: Machines are replaced, and UpdateMachine does nothing.
	KubeletFlags []string `json:"kubeletFlags,omitempty"`
}

// Patch changes the templates of a kind.
type Patch struct {
	// Kind is the kind of the templates, such as InMemoryMachineTemplate.
	Kind string `json:"kind"`
	// JSONPatches are as in inline patches of a ClusterClass, with value or valueFrom.variable.
	JSONPatches []clusterv1beta1.JSONPatch `json:"jsonPatches"`
}

// Parse reads the answer of a hook. Its errors start with the key.
func Parse(hook, text string) (Answer, error) {
	var a Answer
	if err := yaml.UnmarshalStrict([]byte(text), &a); err != nil {
		return Answer{}, fmt.Errorf("key %s: %w", hook, err)
	}
	if err := a.validate(hook); err != nil {
		return Answer{}, fmt.Errorf("key %s: %w", hook, err)
	}
	return a, nil
}

func (a *Answer) validate(hook string) error {
	switch a.Status {
	case "", runtimehooksv1.ResponseStatusSuccess, runtimehooksv1.ResponseStatusFailure:
	default:
		return fmt.Errorf("status is %q, but must be %s or %s",
			a.Status, runtimehooksv1.ResponseStatusSuccess, runtimehooksv1.ResponseStatusFailure)
	}
	switch {
	case a.RetryAfterSeconds < 0:
		return fmt.Errorf("retryAfterSeconds is %d, but must not be negative", a.RetryAfterSeconds)
	case a.Delay.Duration < 0 || a.Delay.Duration > maxDelay:
		return fmt.Errorf("delay is %s, but must be between 0s and %s", a.Delay.Duration, maxDelay)
	case len(a.Patches) > 0 && hook != "GeneratePatches":
		return fmt.Errorf("patches are for GeneratePatches only")
	case len(a.Variables) > 0 && hook != "DiscoverVariables":
		return fmt.Errorf("variables are for DiscoverVariables only")
	case len(a.ControlPlaneUpgrades)+len(a.WorkersUpgrades) > 0 && hook != "GenerateUpgradePlan":
		return fmt.Errorf("controlPlaneUpgrades and workersUpgrades are for GenerateUpgradePlan only")
	case len(a.KubeletFlags) > 0 && !slices.Contains([]string{"CanUpdateMachine", "CanUpdateMachineSet", "UpdateMachine"}, hook):
		return fmt.Errorf("kubeletFlags are for CanUpdateMachine, CanUpdateMachineSet and UpdateMachine only")
	}
	for i, name := range a.KubeletFlags {
		if !kubelet.ValidName(name) {
			return fmt.Errorf("kubeletFlags[%d] is %q, but must be the name of a flag without dashes before it, such as max-pods", i, name)
		}
	}
	for field, versions := range map[string][]string{"controlPlaneUpgrades": a.ControlPlaneUpgrades, "workersUpgrades": a.WorkersUpgrades} {
		for i, v := range versions {
			if _, err := version.ParseSemantic(v); err != nil {
				return fmt.Errorf("%s[%d] is %q, but must be a version, such as v1.36.3", field, i, v)
			}
		}
	}
	for i, p := range a.Patches {
		if err := p.validate(); err != nil {
			return fmt.Errorf("patches[%d]: %w", i, err)
		}
	}
	return nil
}

func (p *Patch) validate() error {
	if p.Kind == "" {
		return fmt.Errorf("kind is required, such as InMemoryMachineTemplate")
	}
	for i := range p.JSONPatches {
		if from := p.JSONPatches[i].ValueFrom; from != nil && from.Variable == nil {
			return fmt.Errorf("jsonPatches[%d]: valueFrom must have a variable: templates are for inline patches", i)
		}
	}
	return nil
}
