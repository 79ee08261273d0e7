package kubernetes

import (
	"net/netip"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// peer is one end of a connection: a pod, or an address outside of the cluster's pods.
type peer struct {
	namespace string
	labels    map[string]string
	ports     map[string]int // of its containers, by name
	address   string
}

// selects reports whether a selector finds the labels; without a selector, nothing is found.
func selects(t *testing.T, selector *meta.LabelSelector, found map[string]string) bool {
	t.Helper()
	s, err := meta.LabelSelectorAsSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	return s.Matches(labels.Set(found))
}

// among reports whether a policy of that namespace means the peer. No list means everybody.
func among(t *testing.T, peers []networking.NetworkPolicyPeer, namespace string, p peer) bool {
	t.Helper()
	for _, of := range peers {
		if of.IPBlock != nil {
			if p.address != "" && netip.MustParsePrefix(of.IPBlock.CIDR).Contains(netip.MustParseAddr(p.address)) && of.IPBlock.Except == nil {
				return true
			}
			continue
		}
		in := p.namespace == namespace
		if of.NamespaceSelector != nil {
			in = selects(t, of.NamespaceSelector, map[string]string{core.LabelMetadataName: p.namespace})
		}
		if p.address == "" && in && (of.PodSelector == nil || selects(t, of.PodSelector, p.labels)) {
			return true
		}
	}
	return len(peers) == 0
}

// onPort reports whether one of the ports is this one of the peer that is connected to. No list means all ports.
func onPort(ports []networking.NetworkPolicyPort, to peer, protocol core.Protocol, number int) bool {
	for _, p := range ports {
		has := core.ProtocolTCP
		if p.Protocol != nil {
			has = *p.Protocol
		}
		want := p.Port.IntValue()
		if p.Port.Type == intstr.String {
			want = to.ports[p.Port.StrVal]
		}
		if has == protocol && want == number {
			return true
		}
	}
	return len(ports) == 0
}

// allowed reports whether the policies let a connection through, at both of its ends. A pod that no policy of a
// direction selects is not restricted in it; one that some select may do what any of them allows.
func allowed(t *testing.T, policies []networking.NetworkPolicy, from, to peer, protocol core.Protocol, number int) bool {
	t.Helper()
	leaves, enters := true, true
	restricted := map[networking.PolicyType]bool{}
	for _, policy := range policies {
		for _, direction := range policy.Spec.PolicyTypes {
			end, passes := from, &leaves
			if direction == networking.PolicyTypeIngress {
				end, passes = to, &enters
			}
			if end.address != "" || end.namespace != policy.Namespace || !selects(t, &policy.Spec.PodSelector, end.labels) {
				continue
			}
			if !restricted[direction] {
				restricted[direction], *passes = true, false
			}
			if direction == networking.PolicyTypeEgress {
				for _, rule := range policy.Spec.Egress {
					*passes = *passes || among(t, rule.To, policy.Namespace, to) && onPort(rule.Ports, to, protocol, number)
				}
				continue
			}
			for _, rule := range policy.Spec.Ingress {
				*passes = *passes || among(t, rule.From, policy.Namespace, from) && onPort(rule.Ports, to, protocol, number)
			}
		}
	}
	return leaves && enters
}

// numbers are the ports of containers, by name.
func numbers(containers ...[]core.Container) map[string]int {
	ports := map[string]int{}
	for _, list := range containers {
		for _, c := range list {
			for _, p := range c.Ports {
				ports[p.Name] = int(p.ContainerPort)
			}
		}
	}
	return ports
}

func TestTheNetworkPoliciesLetThroughWhatIsNeededAndNoMore(t *testing.T) {
	for _, k := range kustomizations {
		t.Run(k, func(t *testing.T) {
			m := build(t, k)
			pod := peer{"billing", m.deployment.Spec.Template.Labels, numbers(m.pod().Containers), ""} // not all networks know the names of a native sidecar's ports
			other := peer{"billing", map[string]string{"app.kubernetes.io/name": "other"}, nil, ""}
			redis := peer{"billing", map[string]string{"app.kubernetes.io/name": "redis"}, map[string]int{"redis": 6379}, ""}
			if k == "overlays/kind" {
				redis.labels, redis.ports = m.redis.Spec.Template.Labels, numbers(m.redis.Spec.Template.Spec.Containers)
			}
			dns := peer{"kube-system", map[string]string{"k8s-app": "kube-dns"}, nil, ""}
			nodeLocal := peer{address: "169.254.20.10"}
			prometheus := peer{"monitoring", map[string]string{"app.kubernetes.io/name": "prometheus"}, nil, ""}
			internet := peer{address: "192.0.2.1"}
			needed := redisPorts(t, &m)
			type connection struct {
				from, to peer
				protocol core.Protocol
				port     int
			}
			yes := []connection{
				{pod, dns, core.ProtocolUDP, 53}, {pod, dns, core.ProtocolTCP, 53},
				{pod, nodeLocal, core.ProtocolUDP, 53}, {pod, nodeLocal, core.ProtocolTCP, 53},
				{prometheus, pod, core.ProtocolTCP, 9747}, {other, pod, core.ProtocolTCP, 8080}, {internet, pod, core.ProtocolTCP, 8080},
			}
			for _, n := range needed {
				yes = append(yes, connection{pod, redis, core.ProtocolTCP, n})
			}
			no := []connection{
				{other, pod, core.ProtocolTCP, 9747}, {internet, pod, core.ProtocolTCP, 9747}, {prometheus, pod, core.ProtocolTCP, 9748},
				{pod, internet, core.ProtocolTCP, 443}, {pod, other, core.ProtocolTCP, needed[0]}, {pod, dns, core.ProtocolTCP, needed[0]},
				{pod, nodeLocal, core.ProtocolTCP, 80}, {pod, peer{"default", redis.labels, nil, ""}, core.ProtocolTCP, needed[0]},
			}
			if k == "overlays/kind" {
				no = append(no, connection{other, redis, core.ProtocolTCP, 6379}, connection{redis, internet, core.ProtocolTCP, 443},
					connection{peer{"default", pod.labels, nil, ""}, redis, core.ProtocolTCP, 6379})
			}
			for want, connections := range map[bool][]connection{true: yes, false: no} {
				for _, c := range connections {
					if allowed(t, m.networks, c.from, c.to, c.protocol, c.port) != want {
						t.Errorf("from %v to %v, %s %d: let through is %t", c.from, c.to, c.protocol, c.port, !want)
					}
				}
			}
		})
	}
}

// The overlay's Redis is found under the name that the table asks for.
func TestTheServiceOfRedisLeadsToIt(t *testing.T) {
	m := build(t, "overlays/kind")
	redis := m.redis.Spec.Template
	if !selects(t, m.redis.Spec.Selector, redis.Labels) || m.redis.Spec.ServiceName != m.service.Name {
		t.Errorf("the StatefulSet selects %v for the Service %s, and its pods have %v", m.redis.Spec.Selector, m.redis.Spec.ServiceName, redis.Labels)
	}
	if !labels.SelectorFromSet(m.service.Spec.Selector).Matches(labels.Set(redis.Labels)) || len(m.service.Spec.Selector) == 0 {
		t.Errorf("the Service selects %v, and the pods have %v", m.service.Spec.Selector, redis.Labels)
	}
	p := m.service.Spec.Ports[0]
	if ports := numbers(redis.Spec.Containers); ports[p.TargetPort.StrVal] != redisPorts(t, &m)[0] || int(p.Port) != redisPorts(t, &m)[0] {
		t.Errorf("the Service leads from %d to %s of %v, and the table asks %v", p.Port, p.TargetPort.String(), ports, redisPorts(t, &m))
	}
	if url := m.table(t).Redis.URL; !strings.Contains(url, "//"+m.service.Name+":") {
		t.Errorf("the table asks %s, the Service is %s", url, m.service.Name)
	}
}
