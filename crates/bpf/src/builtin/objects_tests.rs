//! Objects of programs' own types, in trees and lists.

use super::BACKEND;
use crate::scene::insn::{EXIT, address, call, copy, load, mov};
use crate::scene::{SceneObject, SceneWorld};
use crate::{Insn, Instance, MapKind, Stop, Update};

/// The type: a key, a tree's node, a list's node, a kernel pointer.
const TYPE: u32 = 40;
const NODE: u64 = 8;
const LINK: u64 = 40;
const POINTER: u64 = 64;
const BYTES: u32 = 72;

/// Where a tree's root and a list's head lie in the map's value.
const ROOT: u64 = 0;
const HEAD: u64 = 16;
const VALUE: u32 = 32;

const FUNCTIONS: [(&str, &str); 12] = [
    ("bpf_obj_new_impl", "ptr(u64,ptr)"),
    ("bpf_obj_drop_impl", "void(ptr,ptr)"),
    ("bpf_refcount_acquire_impl", "ptr(ptr,ptr)"),
    ("bpf_rbtree_add_impl", "s32(ptr,ptr,ptr,ptr,u64)"),
    ("bpf_rbtree_first", "ptr(ptr)"),
    ("bpf_rbtree_remove", "ptr(ptr,ptr)"),
    ("bpf_list_push_front_impl", "s32(ptr,ptr,ptr,u64)"),
    ("bpf_list_push_back_impl", "s32(ptr,ptr,ptr,u64)"),
    ("bpf_list_pop_front", "ptr(ptr)"),
    ("bpf_list_pop_back", "ptr(ptr)"),
    ("bpf_list_front", "ptr(ptr)"),
    ("bpf_list_back", "ptr(ptr)"),
];

const EINVAL: u64 = 0xffff_ffea;

struct Scene {
    vm: Instance<SceneWorld>,
    host: SceneWorld,
    /// The value of a hash map under the key 0.
    value: u64,
    less: u64,
}

impl Scene {
    fn new() -> Self {
        let mut object = SceneObject::default()
            .map(MapKind::Hash, 4, VALUE, 2)
            .own_type(TYPE, BYTES, &[POINTER as u32])
            .import("bpf_spin_lock", "")
            .import("bpf_spin_unlock", "");
        for (name, prototype) in FUNCTIONS {
            object = object.import(name, prototype);
        }
        // Function 0 is `less`: the keys stand before the nodes.
        let jump_if_less = Insn {
            code: 0xad,
            dst: 1,
            src: 2,
            off: 1,
            imm: 0,
        };
        object = object.function(&[&[
            load(1, 1, -8),
            load(2, 2, -8),
            mov(0, 1),
            jump_if_less,
            mov(0, 0),
            EXIT,
        ]]);
        // Each function of the list twice: under the lock, and without.
        for import in 2..2 + FUNCTIONS.len() as i32 {
            let args = [load(2, 6, 8), load(3, 6, 16), mov(4, 0), mov(5, 0)];
            let work = [&args[..], &[load(1, 6, 0), call(import)]].concat();
            let lock = [&address(1, 1, 0)[..], &[call(0)]].concat();
            let unlock = [&[copy(7, 0)][..], &address(1, 1, 0), &[call(1), copy(0, 7)]].concat();
            object = object.function(&[&[copy(6, 1)], &lock, &work, &unlock, &[EXIT]]);
            object = object.function(&[&[copy(6, 1)], &work, &[EXIT]]);
        }
        let mut scene = Self {
            vm: object.instance(BACKEND),
            host: SceneWorld::default(),
            value: 0,
            less: 0,
        };
        scene.refill();
        scene.less = scene.vm.function_address(0).unwrap();
        scene
    }

    /// Puts a new value into the map, in the place of the one before.
    fn refill(&mut self) {
        let (key, value) = ([0; 4], [0; VALUE as usize]);
        let Self { vm, host, .. } = self;
        vm.map_update(0, &Update::new(&key, &value), host).unwrap();
        self.value = self.vm.map_value_addr(0, &key, 0).unwrap();
    }

    fn run(&mut self, name: &str, args: &[u64], lock: bool) -> Result<u64, Stop> {
        let mut words = [0; 5];
        words[..args.len()].copy_from_slice(args);
        let known = FUNCTIONS.iter().position(|(other, _)| *other == name);
        let function = 1 + 2 * known.expect("a function of the list") + usize::from(!lock);
        let Self { vm, host, .. } = self;
        Ok(vm.call_program(function as u32, &words, host)?)
    }

    fn call(&mut self, name: &str, args: &[u64]) -> u64 {
        self.run(name, args, true)
            .unwrap_or_else(|stop| panic!("{name}: {stop}"))
    }

    fn create(&mut self, key: u64) -> u64 {
        let object = self.call("bpf_obj_new_impl", &[TYPE.into(), 0]);
        assert_ne!(object, 0);
        self.vm.memory().poke_u64(object, key);
        object
    }

    fn key(&mut self, object: u64) -> u64 {
        self.vm.memory().load_u64(object)
    }

    fn add(&mut self, object: u64) -> u64 {
        let args = [self.value + ROOT, object + NODE, self.less];
        self.call("bpf_rbtree_add_impl", &args)
    }

    /// Takes the tree apart and gives its keys, smallest first.
    fn harvest(&mut self) -> Vec<u64> {
        let mut keys = Vec::new();
        let root = self.value + ROOT;
        loop {
            match self.call("bpf_rbtree_first", &[root]) {
                0 => return keys,
                node => {
                    assert_eq!(self.call("bpf_rbtree_remove", &[root, node]), node);
                    let key = self.key(node - NODE);
                    keys.push(key);
                }
            }
        }
    }
}

#[test]
fn a_tree_gives_the_least_first_and_equals_in_the_order_of_their_coming() {
    let mut scene = Scene::new();
    let keys = [5, 1, 4, 1, 3, 9, 2, 6, 5, 3];
    let objects = keys.map(|key| scene.create(key));
    for object in objects {
        assert_eq!(scene.add(object), 0);
    }
    let first = scene.call("bpf_rbtree_first", &[scene.value + ROOT]);
    assert_eq!(first, objects[1] + NODE, "the older of the two ones");
    assert_eq!(scene.harvest(), [1, 1, 2, 3, 3, 4, 5, 5, 6, 9]);
}

#[test]
fn a_node_is_in_one_tree_at_a_time() {
    let mut scene = Scene::new();
    let object = scene.create(7);
    let root = scene.value + ROOT;
    assert_eq!(scene.call("bpf_rbtree_remove", &[root, object + NODE]), 0);
    assert_eq!(scene.add(object), 0);
    // A second time: the program's reference is dropped, and the tree keeps its own.
    assert_eq!(
        scene.call("bpf_refcount_acquire_impl", &[object, 0]),
        object
    );
    assert_eq!(scene.add(object), EINVAL);
    assert_eq!(scene.harvest(), [7]);
    scene.call("bpf_obj_drop_impl", &[object, 0]);
    let again = scene.run("bpf_obj_drop_impl", &[object, 0], true);
    assert!(matches!(again, Err(Stop::Refused(text)) if text.contains("is no object")));
}

#[test]
fn a_list_is_worked_from_both_ends() {
    let mut scene = Scene::new();
    let head = scene.value + HEAD;
    let objects = [1, 2, 3].map(|key| scene.create(key) + LINK);
    for (node, push) in objects.into_iter().zip([
        "bpf_list_push_back_impl",
        "bpf_list_push_back_impl",
        "bpf_list_push_front_impl",
    ]) {
        assert_eq!(scene.call(push, &[head, node]), 0);
    }
    let [one, two, three] = objects;
    assert_eq!(scene.call("bpf_list_front", &[head]), three);
    assert_eq!(scene.call("bpf_list_back", &[head]), two);
    assert_eq!(scene.call("bpf_list_pop_front", &[head]), three);
    assert_eq!(scene.call("bpf_list_pop_back", &[head]), two);
    assert_eq!(scene.call("bpf_list_pop_front", &[head]), one);
    assert_eq!(scene.call("bpf_list_pop_front", &[head]), 0);
    assert_eq!(scene.call("bpf_list_back", &[head]), 0);
    // A node that was taken out goes where it likes.
    assert_eq!(scene.call("bpf_list_push_back_impl", &[head, one]), 0);
}

#[test]
fn trees_and_lists_are_touched_under_their_lock_only() {
    let mut scene = Scene::new();
    let object = scene.create(1);
    let (root, head) = (scene.value + ROOT, scene.value + HEAD);
    for (name, args) in [
        ("bpf_rbtree_add_impl", vec![root, object + NODE, scene.less]),
        ("bpf_rbtree_first", vec![root]),
        ("bpf_rbtree_remove", vec![root, object + NODE]),
        ("bpf_list_push_back_impl", vec![head, object + LINK]),
        ("bpf_list_pop_front", vec![head]),
        ("bpf_list_back", vec![head]),
    ] {
        let stop = scene.run(name, &args, false).unwrap_err();
        assert!(stop.to_string().contains("without its lock"), "{name}");
    }
    // Objects themselves need none.
    assert_eq!(
        scene.run("bpf_refcount_acquire_impl", &[object, 0], false),
        Ok(object)
    );
}

#[test]
fn what_a_value_holds_goes_with_the_value() {
    let mut scene = Scene::new();
    let [in_tree, in_list, kept] = [1, 2, 3].map(|key| scene.create(key));
    for object in [in_tree, in_list, kept] {
        scene.vm.memory().poke_u64(object + POINTER, 1000 + object);
    }
    scene.add(in_tree);
    scene.add(kept);
    let head = scene.value + HEAD;
    scene.call("bpf_list_push_back_impl", &[head, in_list + LINK]);
    scene.call("bpf_refcount_acquire_impl", &[kept, 0]);
    scene.refill();
    let mut released = std::mem::take(&mut scene.host.released);
    released.sort_unstable();
    assert_eq!(released, [1000 + in_tree, 1000 + in_list]);
    assert!(!scene.vm.objects.is_object(in_tree) && !scene.vm.objects.is_object(in_list));
    assert_eq!(scene.harvest(), [0; 0], "the new value's tree is empty");
    assert_eq!(scene.key(kept), 3, "somebody else owns it too");
    scene.call("bpf_obj_drop_impl", &[kept, 0]);
    assert_eq!(scene.host.released, [1000 + kept]);
}

#[test]
fn only_types_that_the_object_asked_about_are_allocated() {
    let mut scene = Scene::new();
    let stop = scene.run("bpf_obj_new_impl", &[u64::from(TYPE) + 1, 0], true);
    assert!(matches!(stop, Err(Stop::Refused(text)) if text.contains("no type 41")));
    let wild = scene.run("bpf_rbtree_add_impl", &[scene.value, 64, scene.less], true);
    assert!(matches!(wild, Err(Stop::Refused(text)) if text.contains("is no object")));
    let first = scene.create(1);
    scene.call("bpf_obj_drop_impl", &[first, 0]);
    let second = scene.create(0);
    assert_eq!(scene.key(second), 0, "memory that is used again is zero");
}
