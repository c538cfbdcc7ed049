//! Work handed out in path order, results given out in path order, though many hands work at once.
//!
//! A chain of places stands for the part of the tree that is neither searched nor given out. A run is the
//! entries of one directory that nobody has taken; hands take the first of the first run. A directory's
//! entries are put in right behind the directory itself, so the chain is in path order at all times. What
//! is found at the first place is given out at once, what is found further on waits at its place, and a
//! place where nothing was found vanishes. Knows nothing of files or threads.

#[derive(Debug)]
pub struct Order<D, F> {
    places: Vec<Place<D, F>>,
    free: Vec<usize>,
    first: Option<usize>,
    /// No run stands before it.
    cursor: Option<usize>,
}

#[derive(Debug)]
struct Place<D, F> {
    before: Option<usize>,
    after: Option<usize>,
    what: What<D, F>,
}

#[derive(Debug)]
enum What<D, F> {
    Run { of: D, next: u32, end: u32 },
    Busy(Vec<F>),
    Done(Vec<F>),
    Free,
}

/// One entry to work on. Its place must be finished, whatever comes of it.
#[derive(Debug)]
pub struct Taken<D> {
    pub place: usize,
    pub of: D,
    pub index: u32,
}

/// Nothing to do.
impl<D, F> Default for Order<D, F> {
    fn default() -> Self {
        Order { places: Vec::new(), free: Vec::new(), first: None, cursor: None }
    }
}

impl<D: Clone, F> Order<D, F> {
    pub fn new(of: D, entries: u32) -> Self {
        let mut order = Order::default();
        if entries > 0 {
            order.insert_after(None, What::Run { of, next: 0, end: entries });
            order.cursor = order.first;
        }
        order
    }

    /// Whether everything is searched and given out.
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub fn is_first(&self, place: usize) -> bool {
        self.first == Some(place)
    }

    /// Whether the next entry to take is the first of all that is left.
    pub fn next_is_first(&mut self) -> bool {
        self.seek();
        self.cursor.is_some() && self.cursor == self.first
    }

    pub fn take(&mut self) -> Option<Taken<D>> {
        self.seek();
        let run = self.cursor?;
        let What::Run { of, next, end } = &mut self.places[run].what else {
            return None;
        };
        let (of, index) = (of.clone(), *next);
        *next += 1;
        if next < end {
            let before = self.places[run].before;
            let place = self.insert_after(before, What::Busy(Vec::new()));
            return Some(Taken { place, of, index });
        }
        self.places[run].what = What::Busy(Vec::new());
        Some(Taken { place: run, of, index })
    }

    /// Keeps what was found at a place that is being worked on, until it can be given out.
    pub fn add(&mut self, place: usize, found: F) {
        if let What::Busy(kept) = &mut self.places[place].what {
            kept.push(found);
        }
    }

    /// Puts the entries of a directory behind the place where it stands.
    pub fn expand(&mut self, place: usize, of: D, entries: u32) {
        if entries > 0 {
            self.insert_after(Some(place), What::Run { of, next: 0, end: entries });
            // Another hand may be further on by now.
            self.cursor = self.first;
        }
    }

    pub fn finish(&mut self, place: usize) {
        if let What::Busy(kept) = &mut self.places[place].what {
            let kept = std::mem::take(kept);
            if kept.is_empty() {
                self.remove(place);
            } else {
                self.places[place].what = What::Done(kept);
            }
        }
    }

    /// Gives out whatever nothing stands before any more.
    pub fn release(&mut self, mut give: impl FnMut(F)) {
        while let Some(first) = self.first {
            match &mut self.places[first].what {
                What::Busy(kept) => return kept.drain(..).for_each(give),
                What::Done(kept) => {
                    std::mem::take(kept).into_iter().for_each(&mut give);
                    self.remove(first);
                }
                What::Run { .. } | What::Free => return,
            }
        }
    }

    /// Moves the cursor to the first run.
    fn seek(&mut self) {
        while let Some(at) = self.cursor {
            if matches!(self.places[at].what, What::Run { .. }) {
                return;
            }
            self.cursor = self.places[at].after;
        }
    }

    fn insert_after(&mut self, before: Option<usize>, what: What<D, F>) -> usize {
        let after = match before {
            Some(before) => self.places[before].after,
            None => self.first,
        };
        let place = Place { before, after, what };
        let at = match self.free.pop() {
            Some(at) => {
                self.places[at] = place;
                at
            }
            None => {
                self.places.push(place);
                self.places.len() - 1
            }
        };
        match before {
            Some(before) => self.places[before].after = Some(at),
            None => self.first = Some(at),
        }
        if let Some(after) = after {
            self.places[after].before = Some(at);
        }
        at
    }

    fn remove(&mut self, at: usize) {
        let Place { before, after, .. } = self.places[at];
        self.places[at].what = What::Free;
        match before {
            Some(before) => self.places[before].after = after,
            None => self.first = after,
        }
        if let Some(after) = after {
            self.places[after].before = before;
        }
        if self.cursor == Some(at) {
            self.cursor = after;
        }
        self.free.push(at);
    }
}
