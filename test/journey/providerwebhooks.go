package journey

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// providerWebhooks serves the webhooks of providers whose managers do not run: it admits every object unchanged, and converts objects by
// their version alone, which is what conversions leave of the templates here.
type providerWebhooks struct {
	server *httptest.Server
	ca     *x509.Certificate
	// nodes is set if the API server calls Services: then their endpoints are this server. Otherwise, webhooks lead to its URL.
	nodes bool
	api   client.Client
	t     testing.TB
	calls atomic.Int32
	// services are those that the webhooks led to before, by object and name of the webhook.
	services map[string]map[string]any
}

// simulatedEndpoints is the manager of the EndpointSlices of Services that lead to this server.
const simulatedEndpoints = "journey"

// convertPath is where ConversionReviews are answered.
const convertPath = "/convert"

// newProviderWebhooks starts a server at a host, which ends with the test. Its certificate is also that of Services in namespaces.
func newProviderWebhooks(t testing.TB, api client.Client, host string, namespaces ...string) *providerWebhooks {
	t.Helper()
	w := &providerWebhooks{api: api, t: t, services: map[string]map[string]any{}}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	testenv.Must(t, err)
	ca, err := pki.NewCA(pki.ECDSA, time.Now())
	testenv.Must(t, err)
	request := pki.Request{CommonName: host, IPs: []net.IP{net.ParseIP(host)}, Validity: 24 * time.Hour}
	for _, namespace := range namespaces {
		request.DNSNames = append(request.DNSNames, "*."+namespace+".svc")
	}
	pair, err := ca.Issue(request, time.Now())
	testenv.Must(t, err)
	certificate, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	testenv.Must(t, err)
	w.ca, w.server = ca.Certificate, httptest.NewUnstartedServer(w)
	testenv.Must(t, w.server.Listener.Close())
	w.server.Listener = listener
	w.server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	w.server.StartTLS()
	t.Cleanup(w.server.Close)
	return w
}

// ServeHTTP answers AdmissionReviews and ConversionReviews.
func (w *providerWebhooks) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	w.calls.Add(1)
	if request.URL.Path == convertPath {
		w.convert(response, request)
		return
	}
	review := &admissionv1.AdmissionReview{}
	if err := json.NewDecoder(request.Body).Decode(review); err != nil || review.Request == nil {
		http.Error(response, "not an AdmissionReview", http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	review.Request = nil
	response.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(response).Encode(review) // The API server reports it.
}

// convert answers ConversionReviews.
func (w *providerWebhooks) convert(response http.ResponseWriter, request *http.Request) {
	review := &apiextensionsv1.ConversionReview{}
	if err := json.NewDecoder(request.Body).Decode(review); err != nil || review.Request == nil {
		http.Error(response, "not a ConversionReview", http.StatusBadRequest)
		return
	}
	review.Response = &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	for _, o := range review.Request.Objects {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(o.Raw); err != nil {
			http.Error(response, err.Error(), http.StatusBadRequest)
			return
		}
		u.SetAPIVersion(review.Request.DesiredAPIVersion)
		review.Response.ConvertedObjects = append(review.Response.ConvertedObjects, runtime.RawExtension{Object: u})
	}
	review.Request = nil
	response.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(response).Encode(review) // The API server reports it.
}

// inject does what cert-manager does for the webhooks of a provider, but leads the API server to this server: the manager behind the
// provider's Service does not run. It returns how many webhooks there are.
func (w *providerWebhooks) inject(label string) int {
	w.t.Helper()
	count := 0
	for _, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} {
		for _, o := range w.list("admissionregistration.k8s.io/v1", kind, label) {
			before := o.DeepCopy()
			webhooks, _, err := unstructured.NestedSlice(o.Object, "webhooks")
			testenv.Must(w.t, err)
			for _, webhook := range webhooks {
				config := webhook.(map[string]any)["clientConfig"].(map[string]any)
				w.certified(&o, config)
				w.lead(o.GetName()+"/"+webhook.(map[string]any)["name"].(string), config)
			}
			o.Object["webhooks"] = webhooks
			testenv.Must(w.t, w.api.Patch(w.t.Context(), &o, client.MergeFrom(before)))
			count += len(webhooks)
		}
	}
	return count
}

// conversions does the same for the webhooks that convert a provider's objects: templates are in older versions than what is stored.
func (w *providerWebhooks) conversions(label string) int {
	w.t.Helper()
	count := 0
	for _, o := range w.list("apiextensions.k8s.io/v1", "CustomResourceDefinition", label) {
		config, found, err := unstructured.NestedMap(o.Object, "spec", "conversion", "webhook", "clientConfig")
		testenv.Must(w.t, err)
		if !found {
			continue
		}
		w.certified(&o, config)
		before := o.DeepCopy()
		w.lead(o.GetName(), config)
		testenv.Must(w.t, unstructured.SetNestedMap(o.Object, config, "spec", "conversion", "webhook", "clientConfig"))
		testenv.Must(w.t, w.api.Patch(w.t.Context(), &o, client.MergeFrom(before)))
		count++
	}
	return count
}

// lead leads the API server to this server: with a CA bundle, as cert-manager does, and instead of a Service, or through it.
func (w *providerWebhooks) lead(key string, config map[string]any) {
	w.t.Helper()
	config["caBundle"] = w.bundle()
	service := config["service"].(map[string]any)
	if w.nodes {
		w.serve(client.ObjectKey{Namespace: service["namespace"].(string), Name: service["name"].(string)})
		return
	}
	w.services[key] = service
	config["url"] = w.server.URL + service["path"].(string)
	delete(config, "service")
}

// serve makes this server the endpoint of a Service, whose Pods do not run.
func (w *providerWebhooks) serve(key client.ObjectKey) {
	w.t.Helper()
	service, address := &corev1.Service{}, w.server.Listener.Addr().(*net.TCPAddr)
	testenv.Must(w.t, w.api.Get(w.t.Context(), key, service))
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name + "-simulated", Labels: map[string]string{
			discoveryv1.LabelServiceName: key.Name, discoveryv1.LabelManagedBy: simulatedEndpoints,
		}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{
			Addresses: []string{address.IP.String()}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)},
		}},
	}
	for _, port := range service.Spec.Ports {
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: &port.Name, Port: ptr.To(int32(address.Port)), Protocol: &port.Protocol})
	}
	testenv.Must(w.t, client.IgnoreAlreadyExists(w.api.Create(w.t.Context(), slice)))
}

// restore leads the API server back to the provider's Services, as cert-manager leaves the webhooks: with a CA bundle. It cannot call them
// then.
func (w *providerWebhooks) restore(label string) {
	w.t.Helper()
	if w.nodes {
		for _, o := range w.list("v1", "Service", label) {
			testenv.Must(w.t, w.api.DeleteAllOf(w.t.Context(), &discoveryv1.EndpointSlice{}, client.InNamespace(o.GetNamespace()),
				client.MatchingLabels{discoveryv1.LabelManagedBy: simulatedEndpoints}))
		}
		w.server.CloseClientConnections() // Otherwise, the API server would go on with them.
		return
	}
	back := func(config map[string]any, key string) {
		delete(config, "url")
		config["service"] = w.services[key]
	}
	for _, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} {
		for _, o := range w.list("admissionregistration.k8s.io/v1", kind, label) {
			before := o.DeepCopy()
			webhooks, _, err := unstructured.NestedSlice(o.Object, "webhooks")
			testenv.Must(w.t, err)
			for _, webhook := range webhooks {
				webhook := webhook.(map[string]any)
				back(webhook["clientConfig"].(map[string]any), o.GetName()+"/"+webhook["name"].(string))
			}
			o.Object["webhooks"] = webhooks
			testenv.Must(w.t, w.api.Patch(w.t.Context(), &o, client.MergeFrom(before)))
		}
	}
	for _, o := range w.list("apiextensions.k8s.io/v1", "CustomResourceDefinition", label) {
		config, found, err := unstructured.NestedMap(o.Object, "spec", "conversion", "webhook", "clientConfig")
		testenv.Must(w.t, err)
		if !found {
			continue
		}
		before := o.DeepCopy()
		back(config, o.GetName())
		testenv.Must(w.t, unstructured.SetNestedMap(o.Object, config, "spec", "conversion", "webhook", "clientConfig"))
		testenv.Must(w.t, w.api.Patch(w.t.Context(), &o, client.MergeFrom(before)))
	}
}

// certified checks that cert-manager would issue a certificate for the Service that an object leads to.
func (w *providerWebhooks) certified(o *unstructured.Unstructured, config map[string]any) {
	w.t.Helper()
	namespace, name, _ := strings.Cut(o.GetAnnotations()[injectAnnotation], "/")
	certificate := object("cert-manager.io/v1", "Certificate", namespace, name)
	testenv.Must(w.t, w.api.Get(w.t.Context(), client.ObjectKeyFromObject(certificate), certificate))
	hosts, _, err := unstructured.NestedStringSlice(certificate.Object, "spec", "dnsNames")
	testenv.Must(w.t, err)
	service := config["service"].(map[string]any)
	if host := fmt.Sprintf("%s.%s.svc", service["name"], service["namespace"]); !slices.Contains(hosts, host) {
		w.t.Errorf("%s %s: Certificate %s/%s is for %v, not %s", o.GetKind(), o.GetName(), namespace, name, hosts, host)
	}
}

// bundle returns the CA that issued the certificate of this server.
func (w *providerWebhooks) bundle() string {
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.ca.Raw}))
}

// list returns the objects of a kind that are a provider's.
func (w *providerWebhooks) list(apiVersion, kind, label string) []unstructured.Unstructured {
	w.t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(apiVersion)
	list.SetKind(kind + "List")
	testenv.Must(w.t, w.api.List(w.t.Context(), list, client.MatchingLabels{clusterv1.ProviderNameLabel: label}))
	return list.Items
}
