package extension

import (
	"context"
	"errors"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	runtimehooksv1 "sigs.k8s.io/cluster-api/exp/runtime/hooks/api/v1alpha1"
	"sigs.k8s.io/cluster-api/exp/runtime/server"
	"sigs.k8s.io/cluster-api/exp/runtime/topologymutation"
)

const (
	generate, validate, discover = "generate", "validate", "discover"

	// WordVariable is the variable that the extension defines. New Machines run Command of its value.
	WordVariable = "word"
	// DefaultWord is its default.
	DefaultWord = "hello"

	// generatePatches and validateTopology count calls in phase Answers.
	generatePatches, validateTopology = "GeneratePatches", "ValidateTopology"
)

// Command returns the command of new Machines for a value of WordVariable.
func Command(word string) string { return "echo " + word }

// Patch returns the external patch for a ClusterClass.
func Patch() map[string]any {
	return map[string]any{"name": "word", "external": map[string]any{
		"generateExtension": generate + "." + configName, "validateExtension": validate + "." + configName,
		"discoverVariablesExtension": discover + "." + configName,
	}}
}

// patcher serves the hooks of external patches.
type patcher struct {
	client  client.Client
	decoder runtime.Decoder
}

func newPatcher(c client.Client) (*patcher, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(controlplanev1.AddToScheme(scheme), bootstrapv1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	return &patcher{
		client: c, decoder: serializer.NewCodecFactory(scheme).UniversalDecoder(controlplanev1.GroupVersion, bootstrapv1.GroupVersion),
	}, nil
}

func (p *patcher) handlers(to *server.Server) error {
	return errors.Join(
		to.AddExtensionHandler(server.ExtensionHandler{Hook: runtimehooksv1.GeneratePatches, Name: generate, HandlerFunc: p.generate}),
		to.AddExtensionHandler(server.ExtensionHandler{Hook: runtimehooksv1.ValidateTopology, Name: validate, HandlerFunc: p.validate}),
		to.AddExtensionHandler(server.ExtensionHandler{Hook: runtimehooksv1.DiscoverVariables, Name: discover, HandlerFunc: p.discover}),
	)
}

func (p *patcher) generate(
	ctx context.Context, request *runtimehooksv1.GeneratePatchesRequest, response *runtimehooksv1.GeneratePatchesResponse,
) {
	if len(request.Items) == 0 {
		response.SetStatus(runtimehooksv1.ResponseStatusSuccess)
		return
	}
	now, err := record(ctx, p.client, request.Items[0].HolderReference.Namespace, generatePatches, Away, Random)
	if err != nil {
		fail(response, err)
		return
	}
	suffix := ""
	switch PhaseOf(now) {
	case Away:
		response.SetStatus("Away") // An invalid status is a failed call, like that of a server that is unreachable.
		return
	case Random:
		suffix = fmt.Sprint(CallsIn(now, Random))
	}
	topologymutation.WalkTemplates(ctx, p.decoder, request, response,
		func(_ context.Context, template runtime.Object, variables map[string]apiextensionsv1.JSON, _ runtimehooksv1.HolderReference) error {
			word, err := topologymutation.GetStringVariable(variables, WordVariable)
			if err != nil {
				return err
			}
			commands := []string{Command(word + suffix)}
			switch t := template.(type) {
			case *controlplanev1.KubeadmControlPlaneTemplate:
				t.Spec.Template.Spec.KubeadmConfigSpec.PreKubeadmCommands = commands
			case *bootstrapv1.KubeadmConfigTemplate:
				t.Spec.Template.Spec.PreKubeadmCommands = commands
			}
			return nil
		})
}

func (p *patcher) validate(
	ctx context.Context, request *runtimehooksv1.ValidateTopologyRequest, response *runtimehooksv1.ValidateTopologyResponse,
) {
	response.SetStatus(runtimehooksv1.ResponseStatusSuccess)
	if len(request.Items) == 0 {
		return
	}
	now, err := record(ctx, p.client, request.Items[0].HolderReference.Namespace, validateTopology, Rejects)
	switch {
	case err != nil:
		fail(response, err)
	case PhaseOf(now) == Rejects:
		fail(response, errors.New("the record says so"))
	}
}

func (*patcher) discover(
	_ context.Context, _ *runtimehooksv1.DiscoverVariablesRequest, response *runtimehooksv1.DiscoverVariablesResponse,
) {
	response.SetStatus(runtimehooksv1.ResponseStatusSuccess)
	response.Variables = []clusterv1.ClusterClassVariable{{
		Name: WordVariable,
		Schema: clusterv1.VariableSchema{OpenAPIV3Schema: clusterv1.JSONSchemaProps{
			Type: "string", Default: &apiextensionsv1.JSON{Raw: fmt.Appendf(nil, "%q", DefaultWord)},
		}},
	}}
}

func fail(response runtimehooksv1.ResponseObject, err error) {
	response.SetStatus(runtimehooksv1.ResponseStatusFailure)
	response.SetMessage(err.Error())
}
