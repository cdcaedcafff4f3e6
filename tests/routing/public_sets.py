#!/usr/bin/env python3
"""Makes labeled sets for `make eval-routing` from public ones, which are not part of this repository:

BANKING77 github.com/PolyAI-LDN/task-specific-datasets, banking_data/test.csv, CC BY 4.0
HWU64     github.com/xliuhw/NLU-Evaluation-Data, CSV files of the first three folds' test sets in one folder, CC BY 4.0
HINT3     github.com/hellohaptik/HINT3, folder dataset/v2, ODbL 1.0
CLINC150  github.com/clinc/oos-eval, folder data, CC BY 3.0

Five teams consist of BANKING77, HWU64 and HINT3. Five more teams, whose names end in `-oos`, have messages that are labeled out
of scope by the authors: those of CLINC150 for its own team and for the bank, and those of each set of HINT3.

    public_sets.py test.csv folder-of-hwu-csv hint3/dataset/v2 oos-eval/data folder-of-sets
"""
import csv
import json
import random
import sys
from pathlib import Path


def team(slug, name, members):
    """Returns a team of English members: slug, name, description and specialization of each."""
    fields = ("slug", "name", "description", "specialization")
    members = [dict(zip(fields, member)) for member in members]
    return {"slug": slug, "name": name, "language": "en", "defaultAgent": "host", "members": members}


HOME = team("home-assistant", "Home assistant", (
    ("time", "Time and alarms", "Tells the time and date and looks after alarms.", "set an alarm, cancel alarms, current time, time zones, what date it is"),
    ("media", "Music and media", "Plays what you like to hear and changes the sound.", "play music, radio stations, podcasts, audiobooks, games, volume up and down, mute, which song is playing, music preferences"),
    ("calendar", "Calendar", "Keeps appointments and reminders.", "add events, meetings, delete an appointment, reminders, what is on my schedule"),
    ("food", "Cooking and takeaway", "Recipes, and food to order.", "recipes, how to cook a dish, order takeaway, food delivery, restaurants that deliver"),
    ("messages", "E-mail and social media", "Reads and writes messages and posts for you.", "check e-mail, send an e-mail, contacts, phone numbers of contacts, post on twitter and facebook, complaints by tweet"),
    ("home", "Smart home", "Devices of the house.", "lights on and off, dim the lights, light colour, vacuum cleaner, coffee machine, smart plugs"),
    ("lists", "Lists", "Shopping lists, to-do lists and others.", "create a list, add an item to a list, remove from a list, what is on my list"),
    ("news", "News", "What happens in the world.", "headlines, latest news, politics, sports results, news about a topic"),
    ("tips", "Recommendations", "Where to go and what to see.", "events nearby, places, shops and restaurants near me, movies to watch"),
    ("transport", "Transport", "How to get there.", "train tickets, train times, taxi booking, traffic, directions, routes"),
    ("weather", "Weather", "Forecasts.", "rain, temperature, forecast, do I need an umbrella"),
    ("knowledge", "Knowledge", "Answers questions of fact.", "definitions of words, arithmetic, currency exchange rates, stock prices, facts about people, places and things"),
))

# Members by scenario; "general" is small talk.
SCENARIOS = {'alarm':'time','datetime':'time','audio':'media','music':'media','play':'media','calendar':'calendar','cooking':'food','takeaway':'food','email':'messages','social':'messages','iot':'home','lists':'lists','news':'news','recommendation':'tips','transport':'transport','weather':'weather','qa':'knowledge','general':'host'}

BANK = team("app-bank", "App bank", (
    ("cards", "Cards", "New cards and how to get and use them.", "order a card, card delivery, activate a card, link a card, virtual cards, disposable cards, PIN, contactless, expired cards, supported cards, Apple Pay"),
    ("payments", "Card payments", "What was paid with the card.", "declined payments, pending payments, unknown payments, wrong exchange rate, extra charge on the statement, charged twice, reverted payments, refunds, direct debits"),
    ("cash", "Cash", "Withdrawals at machines.", "cash withdrawal, ATMs, wrong amount of cash, withdrawal fees, declined withdrawals, card swallowed by the machine"),
    ("transfers", "Transfers", "Money sent and received by bank transfer.", "failed transfers, pending transfers, cancel a transfer, transfer fees, how long a transfer takes, recipients, receiving money"),
    ("topup", "Top-ups", "Putting money on the account.", "top up by card, top up by bank transfer, top up by cash or cheque, top-up fees, limits, automatic top-up, failed top-ups, pending top-ups, verify a top-up"),
    ("identity", "Account and identity", "Who you are and what we know of you.", "verify identity, source of funds, edit personal details, age limit, countries, close the account"),
    ("security", "Security", "When something is lost or not yours.", "lost or stolen card, lost phone, compromised card, passcode forgotten, unlock PIN"),
    ("exchange", "Currencies", "Holding and exchanging money of other countries.", "exchange currencies, exchange rate, exchange fees, supported currencies"),
))

# Members by category.
CATEGORIES = {'cards':'activate_my_card apple_pay_or_google_pay card_about_to_expire card_acceptance card_arrival card_delivery_estimate card_linking card_not_working change_pin contactless_not_working disposable_card_limits get_disposable_virtual_card get_physical_card getting_spare_card getting_virtual_card order_physical_card supported_cards_and_currencies virtual_card_not_working visa_or_mastercard',
'payments':'card_payment_fee_charged card_payment_not_recognised card_payment_wrong_exchange_rate declined_card_payment direct_debit_payment_not_recognised extra_charge_on_statement pending_card_payment Refund_not_showing_up request_refund reverted_card_payment? transaction_charged_twice',
'cash':'atm_support card_swallowed cash_withdrawal_charge cash_withdrawal_not_recognised declined_cash_withdrawal pending_cash_withdrawal wrong_amount_of_cash_received wrong_exchange_rate_for_cash_withdrawal',
'transfers':'balance_not_updated_after_bank_transfer beneficiary_not_allowed cancel_transfer declined_transfer failed_transfer pending_transfer receiving_money transfer_fee_charged transfer_into_account transfer_not_received_by_recipient transfer_timing',
'topup':'automatic_top_up balance_not_updated_after_cheque_or_cash_deposit pending_top_up top_up_by_bank_transfer_charge top_up_by_card_charge top_up_by_cash_or_cheque top_up_failed top_up_limits top_up_reverted topping_up_by_card verify_top_up',
'identity':'age_limit country_support edit_personal_details terminate_account unable_to_verify_identity verify_my_identity verify_source_of_funds why_verify_identity',
'security':'compromised_card lost_or_stolen_card lost_or_stolen_phone passcode_forgotten pin_blocked',
'exchange':'exchange_charge exchange_rate exchange_via_app fiat_currency_support'}
BANK_MESSAGES, STRANGERS = 2000, 500

MATTRESSES = team("mattress-shop", "Mattress shop", (
    ("products", "Mattresses", "What we make and how it differs.", "features of our mattresses, orthopaedic and ergonomic mattresses, comparing models, pillows, prices of mattresses"),
    ("sizes", "Sizes", "Finds the size that fits your bed.", "which size to order, measuring the bed, custom sizes"),
    ("paying", "Paying", "How to pay, and what can be saved.", "payment in instalments (EMI), cash on delivery, discounts, offers, coupons"),
    ("orders", "Orders and delivery", "Where your order is.", "order status, late deliveries, cancelling an order, whether we deliver to a pincode"),
    ("returns", "Trial, returns and warranty", "When the mattress does not please you.", "100 night trial, returns, exchange, refunds, warranty"),
    ("stores", "Stores and contact", "Where to see us and talk to us.", "showrooms, distributors, shops near you, call back, talking to a person"),
))
MATTRESS_LABELS = {'products':'ORTHO_FEATURES ERGO_FEATURES COMPARISON PRODUCT_VARIANTS ABOUT_SOF_MATTRESS PILLOWS MATTRESS_COST', 'sizes':'WHAT_SIZE_TO_ORDER SIZE_CUSTOMIZATION',
'paying':'EMI COD OFFERS', 'orders':'ORDER_STATUS DELAY_IN_DELIVERY CANCEL_ORDER CHECK_PINCODE', 'returns':'100_NIGHT_TRIAL_OFFER RETURN_EXCHANGE WARRANTY', 'stores':'DISTRIBUTORS LEAD_GEN'}

NUTRITION = team("nutrition-shop", "Nutrition shop", (
    ("advice", "Nutrition advice", "Finds what suits your body and your goal.", "product recommendations, supplements, protein, vitamins, diet plans, weight gain and loss, immunity, side effects"),
    ("orders", "Orders", "Looks after what you ordered.", "order status, tracking, late parcels, cancelling an order, changing the delivery address"),
    ("delivery", "Where we deliver", "What can be ordered and sent where.", "delivery to a pincode, shipping abroad, taking orders and delivering during the lockdown"),
    ("returns", "Returns", "Makes good what went wrong.", "refunds, returns, replacements, expired or damaged products"),
    ("payments", "Payments", "What you pay and what you get back.", "invoices, bills, ways of paying, referral rewards"),
    ("company", "The company", "Us, our stores and our partners.", "store opening, franchise, dealership, becoming a seller, head office, call centre hours"),
    ("quality", "Genuine products", "Shows that what you get is real.", "original products, authenticity, fake products"),
    ("account", "Account and website", "When the site does not do what it should.", "signing up, login, website errors, cart problems"),
))
NUTRITION_LABELS = {'advice':'RECOMMEND_PRODUCT IMMUNITY CONSULT_START USER_GOAL_FORM SIDE_EFFECT', 'orders':'ORDER_STATUS DELAY_IN_PARCEL CANCEL_ORDER MODIFY_ADDRESS ORDER_QUERY',
'delivery':'CHECK_PINCODE RESUME_DELIVERY INTERNATIONAL_SHIPPING ORDER_TAKING', 'returns':'REFUNDS_RETURNS_REPLACEMENTS EXPIRY_DATE', 'payments':'PAYMENT_AND_BILL MODES_OF_PAYMENTS REFER_EARN',
'company':'STORE_INFORMATION FRANCHISE WORK_FROM_HOME CALL_CENTER', 'quality':'ORIGINAL_PRODUCT', 'account':'SIGN_UP PORTAL_ISSUE'}

FANTASY = team("fantasy-sport", "Fantasy sport", (
    ("withdrawals", "Withdrawals", "Your money, out of the wallet.", "withdraw money, withdrawal status, instant withdrawal, how long a withdrawal takes, minimum withdrawal"),
    ("wallet", "Wallet and deposits", "Your money, into the wallet.", "deposit status, adding cash, wallet balance, money deducted but not received, refund of added cash"),
    ("winnings", "Winnings", "What you won and what is left of it.", "winnings not received, wrong amount won, prizes, tax on winnings"),
    ("verification", "Verification", "Proves who you are.", "verify the account, verify e-mail, mobile number or PAN card, confirmation mail, bank account verification"),
    ("profile", "Profile", "What we know of you.", "change mobile number, change bank account, change profile or team name, reset the account, the app"),
    ("contests", "Contests and teams", "How to play.", "how to play, joining a contest, joined contests, choosing players, team deadline, ties"),
    ("scores", "Points and scores", "How points come about.", "points not updated, wrong scores, how points are calculated, abandoned matches"),
    ("fairness", "Fair play", "Keeps the game honest.", "fake teams, fraud, fair play violations"),
    ("bonus", "Offers and bonus", "What you get on top.", "offers, referral programme, cash bonus, sign-up bonus"),
))
FANTASY_LABELS = {'withdrawals':'WITHDRAWAL_STATUS WITHDRAWAL_INTRO WITHDRAWAL_TIME INSTANT_WITHDRAWAL UNUTILIZED_MONEY',
'wallet':'CHECK_DEPOSIT_STATUS CHECK_WALLET_BALANCE DEDUCTED_AMOUNT_NOT_RECEIVED REFUND_OF_ADDED_CASH REFUND_OF_WRONG_AMOUNT ACCOUNT_BALANCE_DEDUCTED', 'winnings':'WINNINGS LESS_WINNINGS_AMOUNT TAXES_ON_WINNINGS',
'verification':'VERIFY_EMAIL VERIFY_MOBILE VERIFY_PAN ACCOUNT_NOT_VERIFIED WHY_VERIFY NO_EMAIL_CONFIRMATION PAN_VERIFICATION_FAILED DELETE_PAN_CARD BANK_VERIFICATION_DETAILS',
'profile':'CHANGE_MOBILE_NUMBER CHANGE_BANK_ACCOUNT CHANGE_PROFILE_TEAM_DETAILS ACCOUNT_RESET DOWNLOAD_POWERPLAY11 UPDATE_APP',
'contests':'JOIN_CONTEST CANNOT_SEE_JOINED_CONTESTS TYPES_CONTESTS HOW_TO_PLAY WHAT_IF_THERES_A_TIE NEW_TEAM_PATTERN TEAM_DEADLINE',
'scores':'POINTS_NOT_UPDATED HOW_POINTS_CALCULATED WRONG_SCORES MATCH_ABANDONED', 'fairness':'FAKE_TEAMS FAIRPLAY_VIOLATIONS', 'bonus':'OFFERS_AND_REFERRALS TYPES_BONUS CASH_BONUS CASH_BONUS_EXPIRY SIGNUP_BONUS WITHDRAW_CASH_BONUS',
'host':'THANKS GREETINGS_DAY APPRECIATION CRITICISM PRESENCE CAPABILITIES'}
# The sets of HINT3 with the number of strangers; labels in no row belong to no single member.
HINTS = (("sofmattress", MATTRESSES, MATTRESS_LABELS, 100), ("curekart", NUTRITION, NUTRITION_LABELS, 150), ("powerplay11", FANTASY, FANTASY_LABELS, 60))
ASSISTANT = team("clinc-oos", "Personal assistant", (
    ("banking", "Banking", "Your bank account.", "account balance, transfers, transactions and spending, bills and minimum payments, interest rates, routing number, ordering checks, PIN, blocked or frozen accounts, fraud"),
    ("cards", "Credit cards", "Credit cards and credit scores.", "new credit card, replacement card, lost or damaged card, declined card, expiration date, credit limit, APR, credit score, rewards, international fees, application status"),
    ("dining", "Kitchen and dining", "Cooking at home and eating out.", "recipes, ingredients, substitutes, cooking time, calories and nutrition, how long food keeps, meal suggestions, restaurant reservations, restaurant reviews and suggestions"),
    ("home", "Home", "Lists, music and orders of your home.", "calendar, reminders, to-do list, shopping list, play music, playlists, which song is playing, smart home, place an order, order status"),
    ("car", "Car and commute", "Everything about driving.", "directions, distance, traffic, current location, taxi, gas, gas type, mileage, oil change, tires, tire pressure, jump start, maintenance"),
    ("travel", "Travel", "Plans your trips.", "flights, flight status, hotels, car rental, lost luggage, carry-on rules, visas, vaccinations, travel alerts, travel suggestions, plug types, time zones, exchange rates, translation"),
    ("utility", "Everyday tools", "Small helpers.", "weather, alarms, timers, time and date, calls and text messages, find my phone, share location, calculator, unit conversion, spelling, definitions, flip a coin, roll dice"),
    ("work", "Work", "Questions about your job and pay.", "days off, vacation requests, holidays, meetings, salary, payday, direct deposit, taxes, W-2 form, 401k, health insurance"),
))
# Members by domain of CLINC150; "small_talk" and "meta" belong to no member and are left out.
DOMAINS = {'banking':'banking','credit_cards':'cards','kitchen_and_dining':'dining','home':'home','auto_and_commute':'car','travel':'travel','utility':'utility','work':'work'}
OUT_OF_SCOPE = "NO_NODES_DETECTED"
IN_SCOPE_MESSAGES, OUT_OF_SCOPE_MESSAGES = 800, 500
STRANGE = ("weather", "cooking", "news", "iot", "music", "calendar", "transport", "general")


def write(folder, team, messages):
    random.shuffle(messages)
    rows = [{"language": "en", "text": text, "expect": expect} for text, expect in messages]
    text = json.dumps({"manner": "plain", "team": team, "messages": rows, "dialogues": []}, indent=1)
    (folder / f"{team['slug']}.json").write_text(text)


def main():
    banking, home, hints, clinc, folder = (Path(argument) for argument in sys.argv[1:6])
    random.seed(1)
    folder.mkdir(parents=True, exist_ok=True)
    said = {}
    for file in sorted(home.glob("*.csv")):
        for row in csv.DictReader(file.open(encoding="utf-8"), delimiter=";"):
            said[row["scenario"], row["intent"], row["answer_from_user"].strip()] = row["scenario"]
    said = [(text, scenario) for (_, _, text), scenario in said.items() if text]
    write(folder, HOME, [(text, SCENARIOS[scenario]) for text, scenario in said])
    member = members_of(CATEGORIES)
    asked = [(row["text"].strip(), member[row["category"]]) for row in csv.DictReader(banking.open())]
    strange = [(text, "host") for text, scenario in said if scenario in STRANGE]
    write(folder, BANK, random.sample(asked, BANK_MESSAGES) + random.sample(strange, STRANGERS))
    for name, team, labels, strangers in HINTS:
        write(folder, team, hinted(hints, name, labels) + random.sample(strange, strangers))
    write_out_of_scope(folder, asked, hints, clinc)


def write_out_of_scope(folder, bank_messages, hints, clinc):
    """Writes the sets whose out-of-scope messages are labeled by their authors; only test parts are used."""
    data = json.loads((clinc / "data_full.json").read_text())
    intents = json.loads((clinc / "domains.json").read_text())
    member = {intent: slug for domain, slug in DOMAINS.items() for intent in intents[domain]}
    strange = random.sample([(text, "host") for text, _ in data["oos_test"]], OUT_OF_SCOPE_MESSAGES)
    known = [(text, member[intent]) for text, intent in data["test"] if intent in member]
    write(folder, ASSISTANT, random.sample(known, IN_SCOPE_MESSAGES) + strange)
    write(folder, dict(BANK, slug="app-bank-oos"), random.sample(bank_messages, IN_SCOPE_MESSAGES) + strange)
    for name, team, labels, _ in HINTS:
        in_scope = [(text, slug) for text, slug in hinted(hints, name, labels) if slug != "host"]
        with (hints / "test" / f"{name}_test.csv").open(encoding="utf-8") as file:
            outside = [(row["sentence"].strip(), "host") for row in csv.DictReader(file) if row["label"] == OUT_OF_SCOPE]
        write(folder, dict(team, slug=f"{team['slug']}-oos"), in_scope + outside)


def members_of(labels):
    """Returns the member of each label."""
    return {label: slug for slug, of_member in labels.items() for label in of_member.split()}


def hinted(folder, name, labels):
    """Returns the messages of one set of HINT3, each once, with their members."""
    member = members_of(labels)
    said = {}
    for part in ("train", "test"):
        for row in csv.DictReader((folder / part / f"{name}_{part}.csv").open(encoding="utf-8")):
            if row["label"] in member:
                said[row["sentence"].strip()] = member[row["label"]]
    return list(said.items())


main()
