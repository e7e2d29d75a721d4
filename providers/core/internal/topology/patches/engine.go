package patches

import (
	"context"
	"fmt"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Engine applies the patches of one generation of a class. It is immutable and safe for concurrent use.
type Engine struct {
	patches []generator
	checks  []check
}

// generator applies one patch to the templates of a run.
type generator interface {
	apply(ctx context.Context, r *run) error
}

// check validates the templates after all patches.
type check interface {
	check(ctx context.Context, r *run) error
}

// New compiles the patches of a class. That costs far more than applying them, and depends only on the spec of the class: cache
// the Engine until the generation of the class changes.
//
// The extension serves external patches; if it is nil, external patches are errors.
func New(class *clusterv1.ClusterClass, extension Extension) (*Engine, error) {
	e := &Engine{}
	p := newParser()
	for i := range class.Spec.Patches {
		patch := &class.Spec.Patches[i]
		if patch.External == nil {
			compiled, err := compileInline(p, patch)
			if err != nil {
				return nil, fmt.Errorf("ClusterClass %s/%s, patch %q: %w", class.Namespace, class.Name, patch.Name, err)
			}
			e.patches = append(e.patches, compiled)
			continue
		}
		if extension == nil {
			return nil, fmt.Errorf("ClusterClass %s/%s, patch %q: external patches require the feature gate RuntimeSDK",
				class.Namespace, class.Name, patch.Name)
		}
		x := &external{patch: patch.DeepCopy(), extension: extension}
		if patch.External.GeneratePatchesExtension != "" {
			e.patches = append(e.patches, x)
		}
		if patch.External.ValidateTopologyExtension != "" {
			e.checks = append(e.checks, x)
		}
	}
	return e, nil
}

// Apply applies the patches in the order of the class and writes the resulting specs, labels and annotations into the Targets of the
// input. In case of an error the input is unchanged. Errors contain the patch, the template and, for inline patches, the definition and
// JSON patch.
func (e *Engine) Apply(ctx context.Context, in *Input) error {
	r := newRun(in)
	for _, patch := range e.patches {
		if err := patch.apply(ctx, r); err != nil {
			return err
		}
	}
	for _, c := range e.checks {
		if err := c.check(ctx, r); err != nil {
			return err
		}
	}
	return r.commit()
}
