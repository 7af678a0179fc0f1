"""How much it says that a prompt and a note share a word. Words in which anything is asked say nothing, words that
developers use whatever they talk about say less than names and rare words."""

from __future__ import annotations

from functools import lru_cache

from nudge.words import STOP_WORDS, stem

# Words in which things are asked or ordered, whatever they are about.
_ASKING = """
across although anyway because besides despite due etc hence however instead its itself let meanwhile neither
nor onto per plus rather regarding since somehow somewhat still therefore thus till toward unless until upon via
whenever whereas wherever whether within without yet
add advice again ago also another anything back best better change changed conversation create current currently day
days discussed during ever find first fix found get getting go going good got happen happened hello help hi idea ideas
implement interesting know last let lets like ll long look looks made make making many maybe mentioned month months move
moved moving much need needed new often ok okay old one past please previous previously put re really recent recently
recommend recommendation recommendations recommended remember remind replace run running said see set show since someone
something spend spent start started still suggest suggested suggestion suggestions sure switch take takes talked tell
thank thanks thing things think thinking thought three time times tip tips told took total try two use used using ve
want wanted way week weeks while work working works write wrong year years yes
"""
_FREQUENT = """
actual actually around attend book bug check class code com complete consider data describe description differ
different event example excited experience give great hour http import improve information issue keep late later learn
lot market mean option plan provide py python reproduce similar speak today type well wonder
"""
_COMMON = """
able access account action additional address age allow alone along already always amount answer apart api app appear
application apply area argument article ask assert attempt auto available avoid aware away backend bad base bash basic
basically begin behavior believe big bit black blank block body bottom box branch break bring broken browser build
bump button buy call came cannot card care case cause certain chance changelog character choose ci clean cleanup clear
cli click client close cloud column come command comment commit commits common company compare concern config
configuration connect connection contain content context continue control convert copy correct cost could count couple
course cover coverage css custom cut database date deal debug decide default define delete depend deploy design detail
determine dev developer development difference difficult directory disable display doc docker document documentation
double doubt download drop dry due each early easily easy edit effect either else email empty enable end endpoint
ensure enter entire entry environment error especially even every everyone everything exact exactly except exception
exist expect explain extra fact fail failing failure fall false far fast feature feel fetch few field figure file fill
filter final finally fine finish fit fixme fixture flow folder follow force form format free friend front frontend
full fully function further future gave general generate git github given global goes golang gone group guess half
hand handle happens hard head hear heavy helper high hint hit hold home hope host however html https huge human icon
ignore image implementation important include increase indeed info inside install instance instead instruction
interface internal item java javascript join json jump key kind knowledge label language large latest layout lead
leave left length less level library life light likely limit line link lint linter linux list little live load local
location lock log logic login longer loop lose low mac main maintain major manage manual map mark match matter max
member memory menu merge message method middle might mind minute miss missing mock mode model modify module moment
most mostly name near necessary neither network nice node none normal normally note nothing notice npm number object
obvious occur offer office online only open operation order original otherwise output outside overall own package page
parameter parse part particular pass password path pattern pay people perfect perhaps person phone pick picture piece
place platform play plus point port possible post pr prefer prepare present press pretty prevent print probably
problem process product production program programming progress project prompt proper property public pull purpose
push query question quick quickly quite raise random range rather raw reach read readme ready real reason rebase
receive refactor refactoring reference related release remain remote remove rename render repeat reply repo report
repository represent request require required reset resource response rest result return review rewrite right role
root rule runs rust safe sample save scan scheme scope screen script search second section seem select send sense
separate server service session setting setup several share shell short should side sign simple simply single site
size skip slow small software solution solve somehow somewhere sort sound source space spec special specific specify
speed split sql stack stage standard state statement static status stay step stop storage store string strong
structure stub stuff style subject submit such suite support suppose system tab table tag talk target task team
technical terminal test testing tests text third though throw ticket tidy title todo together tool top touch track
treat tree trigger trouble true trust turn tutorial typescript typical under understand unit unittest unless until
update upgrade upload upper url usage user usual usually utility valid value variable various verify version very via
video view visible visit wait walk warning watch web website whatever whether white whole wide window windows wish
within without word world worth would wrap yet
"""
ASKING_WORDS = frozenset(_ASKING.split())
_GROUPS = ((STOP_WORDS | ASKING_WORDS, 0.0), (frozenset(_FREQUENT.split()), 0.35), (frozenset(_COMMON.split()), 0.6))
_WEIGHTS = {stem(word): weight for words, weight in reversed(_GROUPS) for word in words}
_RARE, _NUMBER = 1.0, 0.7
_LONG_NUMBER = 3  # digits: shorter numbers say nothing by themselves


@lru_cache(maxsize=8_192)
def weight_of(stemmed: str) -> float:
    """What a shared word is worth, from 0 to 1. `stemmed` is a stem in lower case."""
    if stemmed.isdecimal():
        return _NUMBER if len(stemmed) >= _LONG_NUMBER else 0.0
    return 0.0 if len(stemmed) == 1 else _WEIGHTS.get(stemmed, _RARE)
