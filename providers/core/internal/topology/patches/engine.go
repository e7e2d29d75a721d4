package patches

import (
	"context"
	"fmt"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/providers/internal/gotemplate"
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
		if patch.External.GenerateExtension != nil {
			e.patches = append(e.patches, x)
		}
		if patch.External.ValidateExtension != nil {
			e.checks = append(e.checks, x)
		}
	}
	return e, nil
}

// Apply applies the patches in the order of the class and writes the resulting specs into the Targets of the input. In case of
// an error the input is unchanged. Errors contain the patch, the template and, for inline patches, the definition and JSON patch.
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

// run is one application of an Engine.
type run struct {
	cluster *clusterv1.Cluster
	class   *clusterv1.ClusterClass
	items   []*item
	builtin map[string]any             // builtin.cluster
	defined map[string]map[string]bool // source -> variables that it defines
	inline  map[string]any             // values of the Cluster for inline patches, once computed
	budget  *gotemplate.Budget
}

func newRun(in *Input) *run {
	r := &run{cluster: in.Cluster, class: in.Class, items: in.items(),
		builtin: clusterBuiltin(in.Cluster), defined: map[string]map[string]bool{}, budget: gotemplate.NewBudget(runWork)}
	for i := range in.Class.Status.Variables {
		variable := &in.Class.Status.Variables[i]
		for j := range variable.Definitions {
			from := variable.Definitions[j].From
			if r.defined[from] == nil {
				r.defined[from] = map[string]bool{}
			}
			r.defined[from][variable.Name] = true
		}
	}
	return r
}

// commit writes the results into the targets, all or none.
func (r *run) commit() error {
	specs := make([]map[string]any, len(r.items))
	for i, item := range r.items {
		spec, err := item.patchedSpec()
		if err != nil {
			return err
		}
		specs[i] = spec
	}
	for i, item := range r.items {
		if specs[i] != nil {
			item.target.Object["spec"] = specs[i]
		}
	}
	return nil
}
